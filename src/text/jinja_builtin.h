#pragma once
// Functions, filters, tests and methods that the language brings along: tables of records, and how
// arguments reach their parameters.
#include <ctime>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_value.h"

namespace octet::jinja {

// Local time, as `strftime_now` shows it.
using Clock = std::function<std::tm()>;

// What one rendering owns and builtins may use.
struct Runtime {
  Budget budget;
  Clock clock;
  std::deque<Namespace> namespaces;  // a deque: values point into it
};

// What a call wrote between its parentheses.
struct CallArguments {
  ValueList positional;
  std::vector<std::pair<std::string, Value>> named;

  const Value* find(std::string_view name) const;
};

// The arguments of one call, by parameter.
struct Arguments {
  ValueList slots;          // one per parameter; those not given are undefined
  std::vector<bool> given;  // by parameter
  CallArguments rest;       // what "*" and "**" took

  const Value& operator[](size_t i) const { return slots[i]; }
  bool has(size_t i) const { return given[i]; }
  // The slot's integer or `fallback` when it was not given. Throws unless it is a bool or an int.
  int64_t integer(size_t i, int64_t fallback, std::string_view what) const;
  // The slot's string. Throws unless it is one.
  const std::string& text(size_t i, std::string_view what) const;
};

// One function, filter, test or method. `parameters` are names apart by spaces: "old new count?";
// "?" marks one that may be missing, "*" takes further positional, "**" further named arguments.
// The first is the value that a filter, test or method works on.
struct Builtin {
  std::string_view name;
  std::string_view parameters;
  Value (*run)(Runtime& runtime, const Arguments& arguments);
};

// Thrown by raise_exception; the rendering turns it into the Error whose message is the template's.
struct RaisedByTemplate {
  std::string message;
};

// Calls `builtin`. Throws Error{BadInput} when an argument is missing, unknown or given twice.
Value run_builtin(Runtime& runtime, const Builtin& builtin, CallArguments arguments);
// As above, for what works on `subject` (filters, tests, methods).
Value run_builtin(Runtime& runtime, const Builtin& builtin, const Value& subject,
                  CallArguments arguments);

using BuiltinTable = std::span<const Builtin>;
const Builtin* find_builtin(BuiltinTable table, std::string_view name);

BuiltinTable text_filters();
BuiltinTable list_filters();
BuiltinTable text_methods();
BuiltinTable dict_methods();
BuiltinTable sequence_methods();
BuiltinTable loop_methods();
BuiltinTable global_functions();
BuiltinTable tests();

// A filter of either table; null when there is none.
const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);

}  // namespace octet::jinja
