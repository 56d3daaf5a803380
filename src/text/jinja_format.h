#pragma once
// Python's two ways to format: "%s" % value and "{}".format(value).
#include <string>
#include <string_view>

#include "text/jinja_builtin.h"

namespace octet::jinja {

// How one value is laid out; the union of what % and format() can ask for.
struct FormatSpec {
  std::string fill = " ";  // one code point
  char align = 0;          // < > ^ = or 0: by type
  char sign = '-';         // + - or space
  bool alternate = false;  // 0x before hexadecimal
  bool grouped = false;    // thousands apart by commas
  int64_t width = 0;
  int64_t precision = -1;  // -1: none
  char type = 0;
};

// Appends `value` as a number of spec.type (d i u f F e E g G % x X o b n). Throws Error{BadInput}
// when it is no such number.
void append_number(TextBuilder& out, const Value& value, const FormatSpec& spec);
// Appends `text` cut to the precision and padded to the width.
void append_padded(TextBuilder& out, std::string_view text, const FormatSpec& spec);

// left % right, `left` a string. Throws Error{BadInput} for what does not match.
Value format_percent(const Value& left, const Value& right, Budget& budget);

// left.format(...). Throws Error{BadInput} for what does not match or is not supported (!a, specs
// in specs deeper than one level).
Value format_braces(const Value& left, const CallArguments& arguments, Budget& budget);

}  // namespace octet::jinja
