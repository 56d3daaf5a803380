#pragma once
// Values as text: Python's str() and repr(), and JSON as Python's json.dumps writes it.
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "text/jinja_value.h"

namespace octet::jinja {

// str(value): what `{{ value }}` prints. Undefined prints nothing.
std::string to_text(const Value& value, Budget& budget);
void append_text(TextBuilder& out, const Value& value);

// repr(value): strings in quotes.
void append_repr(TextBuilder& out, const Value& value);
std::string repr(const Value& value, Budget& budget);

// repr of a float: the shortest digits that give the same number back.
std::string real_text(double value);

// The parameters of json.dumps.
struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // one level of it; nullopt: all on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

// Appends json.dumps(value). Throws Error{BadInput} for what JSON cannot hold, undefined included.
void append_json(TextBuilder& out, const Value& value, const JsonStyle& style);

// The value of parsed JSON. `where` is its JSON pointer, for errors. Throws Error{BadInput} for
// text that is not UTF-8, integers beyond int64 and nesting deeper than kMaxValueDepth.
Value from_json(const nlohmann::ordered_json& json, const std::string& where, Budget& budget);

}  // namespace octet::jinja
