// "{} {name!r:>8}".format(...): the replacement fields of Python's format strings.
#include <algorithm>

#include "text/jinja_format.h"
#include "text/jinja_literal.h"
#include "text/jinja_operator.h"
#include "text/jinja_print.h"
#include "text/jinja_unicode.h"
#include "text/utf8.h"

namespace octet::jinja {
namespace {

int64_t small_number(std::string_view digits) {
  int64_t value = 0;
  for (const char c : digits) value = std::min<int64_t>(value * 10 + (c - '0'), int64_t{1} << 40);
  return value;
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// [[fill]align][sign][#][0][width][,][.precision][type]
FormatSpec parse_spec(std::string_view text) {
  FormatSpec spec;
  const std::string_view whole = text;
  const auto is_align = [](std::string_view rest, size_t at) {
    return at < rest.size() && std::string_view("<>=^").find(rest[at]) != std::string_view::npos;
  };
  const size_t first = text.empty() ? 0 : code_point_at(text, 0).bytes;
  if (is_align(text, first)) {
    spec.fill = text.substr(0, first);
    spec.align = text[first];
    text.remove_prefix(first + 1);
  } else if (is_align(text, 0)) {
    spec.align = text[0];
    text.remove_prefix(1);
  }
  const auto take = [&](char c) {
    if (!text.starts_with(c)) return false;
    text.remove_prefix(1);
    return true;
  };
  const auto take_digits = [&] {
    const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::string_view digits = text.substr(0, end);
    text.remove_prefix(end);
    return digits;
  };
  for (const char sign : {'+', '-', ' '}) {
    if (take(sign)) {
      spec.sign = sign;
      break;
    }
  }
  spec.alternate = take('#');
  if (text.starts_with('0') && spec.align == 0) {
    spec.align = '=';
    spec.fill.assign(1, '0');
  }
  spec.width = small_number(take_digits());
  spec.grouped = take(',');
  if (take('.')) {
    const std::string_view digits = take_digits();
    if (digits.empty()) fail("Format specifier missing precision");
    spec.precision = small_number(digits);
  }
  if (!text.empty()) {
    spec.type = text[0];
    text.remove_prefix(1);
  }
  if (!text.empty()) fail(fmt::format("Invalid format specifier '{}'", whole));
  return spec;
}

class BraceFormatter {
 public:
  BraceFormatter(const Value& format, const CallArguments& arguments, Budget& budget)
      : safe_(format.is_safe()), arguments_(arguments), budget_(budget) {}

  void append(TextBuilder& out, std::string_view format, int level) {
    for (size_t at = 0; at < format.size();) {
      const char c = format[at];
      const bool doubled = at + 1 < format.size() && format[at + 1] == c;
      if ((c == '{' || c == '}') && doubled) {
        out += c;
        at += 2;
      } else if (c == '}') {
        fail("Single '}' encountered in format string");
      } else if (c == '{') {
        at = field(out, format, at + 1, level);
      } else {
        const size_t end = std::min(format.find_first_of("{}", at), format.size());
        out += format.substr(at, end - at);
        at = end;
      }
    }
  }

 private:
  // One field whose text starts at `at`; returns the position after its closing brace.
  size_t field(TextBuilder& out, std::string_view format, size_t at, int level) {
    if (level > 1) fail("Max string recursion exceeded");
    budget_.step();
    size_t end = at;
    for (int open = 1; open > 0; ++end) {
      if (end >= format.size()) fail("expected '}' before end of string");
      if (format[end] == '{') ++open;
      if (format[end] == '}') --open;
    }
    const std::string_view inside = format.substr(at, end - 1 - at);
    const size_t colon = std::min(inside.find(':'), inside.size());
    const size_t bang = std::min(inside.substr(0, colon).find('!'), colon);
    const Value value = lookup(inside.substr(0, bang));
    const std::string_view conversion = inside.substr(bang, colon - bang);
    std::string spec_text;
    if (colon < inside.size()) {
      TextBuilder spec(budget_);
      append(spec, inside.substr(colon + 1), level + 1);
      spec_text = spec.take();
    }
    write(out, value, conversion, spec_text);
    return end;
  }

  const Value& argument(std::string_view name) {
    if (name.empty() || all_digits(name)) {
      const auto index = name.empty() ? next_++ : static_cast<size_t>(small_number(name));
      if (index >= arguments_.positional.size()) {
        fail(fmt::format("Replacement index {} out of range for positional args tuple", index));
      }
      return arguments_.positional[index];
    }
    const Value* value = arguments_.find(name);
    if (value == nullptr) fail(fmt::format("format() has no argument named '{}'", name));
    return *value;
  }

  // name, name.attribute, name[key]
  Value lookup(std::string_view path) {
    size_t end = std::min(path.find_first_of(".["), path.size());
    Value value = argument(path.substr(0, end));
    while (end < path.size()) {
      const bool bracket = path[end] == '[';
      const size_t start = end + 1;
      size_t stop = std::min(path.find_first_of(bracket ? "]" : ".[", start), path.size());
      if (bracket && stop == path.size()) fail("Missing ']' in format string");
      const std::string_view part = path.substr(start, stop - start);
      if (part.empty()) fail("Empty attribute in format string");
      if (!bracket) {
        value = attribute_of(value, part, budget_);
      } else if (all_digits(part)) {
        value = item_of(value, Value::integer(small_number(part)), budget_);
      } else {
        value = item_of(value, Value::text(std::string(part)), budget_);
      }
      end = bracket ? stop + 1 : stop;
    }
    return value;
  }

  void write(TextBuilder& out, const Value& value, std::string_view conversion,
             std::string_view spec_text) {
    if (!conversion.empty() && conversion != "!s" && conversion != "!r") {
      fail(fmt::format("the conversion '{}' is not supported in format()", conversion));
    }
    FormatSpec spec = parse_spec(spec_text);
    const bool number = conversion.empty() && value.as_real() && spec.type != 's';
    if (number && !(value.is_boolean() && spec_text.empty())) {
      if (spec.type != 0 &&
          std::string_view("dxXobfFeEgG%").find(spec.type) == std::string_view::npos) {
        fail(fmt::format("Unknown format code '{}' for object of type '{}'", spec.type,
                         value.type_name()));
      }
      append_number(out, value, spec);
      return;
    }
    const bool plain = conversion.empty() && !value.is_text();
    if (spec.type != 0 && spec.type != 's') {
      fail(fmt::format("Unknown format code '{}' for object of type '{}'", spec.type,
                       value.type_name()));
    }
    if (plain && !spec_text.empty() && !value.is_boolean()) {
      fail(fmt::format("unsupported format string passed to {}.__format__", value.type_name()));
    }
    std::string text = conversion == "!r" ? repr(value, budget_) : to_text(value, budget_);
    if (safe_ && !value.is_safe()) text = escape_html(text);
    append_padded(out, text, spec);
  }

  bool safe_;
  const CallArguments& arguments_;
  Budget& budget_;
  size_t next_ = 0;
};

}  // namespace

Value format_braces(const Value& left, const CallArguments& arguments, Budget& budget) {
  TextBuilder out(budget);
  BraceFormatter(left, arguments, budget).append(out, left.bytes(), 0);
  return Value::text(out.take(), left.is_safe());
}

}  // namespace octet::jinja
