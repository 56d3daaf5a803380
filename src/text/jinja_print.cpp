#include "text/jinja_print.h"

#include <charconv>
#include <cmath>

#include "text/jinja_builtin.h"
#include "text/jinja_machine.h"
#include "text/jinja_unicode.h"
#include "text/utf8.h"

namespace octet::jinja {
namespace {

void append_quoted(TextBuilder& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out += quote;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    const uint32_t c = point.value;
    if (c == static_cast<uint32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out += text.substr(at, point.bytes);
    } else if (c < 0x100) {
      out += fmt::format("\\x{:02x}", c);
    } else if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += fmt::format("\\U{:08x}", c);
    }
    at += point.bytes;
  }
  out += quote;
}

void append_items(TextBuilder& out, const ValueList& items) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    append_repr(out, items[i]);
  }
}

void append_dict(TextBuilder& out, const std::vector<std::pair<Value, Value>>& entries) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : entries) {
    if (!first) out += ", ";
    first = false;
    append_repr(out, key);
    out += ": ";
    append_repr(out, value);
  }
  out += '}';
}

// A namespace may hold itself, so its printing counts depth where other values are bounded already.
void append_namespace(TextBuilder& out, const Namespace& space) {
  thread_local int nesting = 0;
  struct Count {
    Count() { ++nesting; }
    ~Count() { --nesting; }
  } count;
  if (nesting > 8) fail("a namespace that holds itself cannot be printed");
  out += "<Namespace {";
  bool first = true;
  for (const auto& [key, value] : space.attributes) {
    if (!first) out += ", ";
    first = false;
    append_quoted(out, key);
    out += ": ";
    append_repr(out, value);
  }
  out += "}>";
}

void append_sequence(TextBuilder& out, const Sequence& sequence) {
  switch (sequence.kind) {
    case SequenceKind::List:
      out += '[';
      append_items(out, sequence.items);
      out += ']';
      return;
    case SequenceKind::Tuple:
      out += '(';
      append_items(out, sequence.items);
      out += sequence.items.size() == 1 ? ",)" : ")";
      return;
    case SequenceKind::Range:
      out += sequence.shown;
      return;
    case SequenceKind::Keys:
      out += "dict_keys([";
      break;
    case SequenceKind::Values:
      out += "dict_values([";
      break;
    case SequenceKind::Items:
      out += "dict_items([";
      break;
    case SequenceKind::Generator:
      fail("a generator cannot be printed", "make it a list first: |list");
  }
  append_items(out, sequence.items);
  out += "])";
}

}  // namespace

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  const std::string_view written(buffer, static_cast<size_t>(end.ptr - buffer));
  const size_t e = written.find('e');
  int exponent = 0;
  const char* digits_of_exponent = written.data() + e + (written[e + 1] == '+' ? 2 : 1);
  std::from_chars(digits_of_exponent, end.ptr, exponent);
  std::string digits;
  const bool negative = written[0] == '-';
  for (const char c : written.substr(0, e)) {
    if (c != '.' && c != '-') digits += c;
  }
  const std::string_view sign = negative ? "-" : "";
  if (exponent < -4 || exponent >= 16) {  // where repr() changes its form
    const std::string_view dot = digits.size() > 1 ? "." : "";
    return fmt::format("{}{}{}{}e{}{:02}", sign, digits[0], dot, digits.substr(1),
                       exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return fmt::format("{}0.{:0<{}}{}", sign, "", -exponent - 1, digits);
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return fmt::format("{}{:0<{}}.0", sign, digits, whole);
  return fmt::format("{}{}.{}", sign, digits.substr(0, whole), digits.substr(whole));
}

void append_repr(TextBuilder& out, const Value& value) {
  out.budget().step();
  if (value.is_text()) {
    if (value.is_safe()) out += "Markup(";
    append_quoted(out, value.bytes());
    if (value.is_safe()) out += ')';
  } else if (value.is_undefined()) {
    out += "Undefined";
  } else if (value.is_none()) {
    out += "None";
  } else if (value.is_boolean()) {
    out += value.get<bool>() ? "True" : "False";
  } else if (value.is_integer()) {
    out += fmt::format("{}", value.get<int64_t>());
  } else if (value.is_real()) {
    out += real_text(value.get<double>());
  } else if (value.is_sequence()) {
    append_sequence(out, value.items());
  } else if (value.is_dict()) {
    append_dict(out, value.dict().entries);
  } else if (value.holds<Namespace*>()) {
    append_namespace(out, *value.get<Namespace*>());
  } else if (value.holds<const MacroObject*>()) {
    const std::string_view name = value.get<const MacroObject*>()->node->name;
    out += "<Macro ";
    name.empty() ? void(out += "anonymous") : append_quoted(out, name);
    out += '>';
  } else if (value.holds<std::shared_ptr<LoopObject>>()) {
    LoopObject& loop = *value.get<std::shared_ptr<LoopObject>>();
    out += fmt::format("<LoopContext {}/{}>", loop.index0() + 1, loop.length());
  } else {
    fail(fmt::format("a {} cannot be printed", value.type_name()),
         "a call needs parentheses, as in x.strip()");
  }
}

void append_text(TextBuilder& out, const Value& value) {
  if (value.is_text()) {
    out += value.bytes();
  } else if (!value.is_undefined()) {
    append_repr(out, value);
  }
}

std::string to_text(const Value& value, Budget& budget) {
  if (value.is_text()) {
    budget.scan(value.bytes().size());
    budget.allocate(value.bytes().size());
    return value.bytes();
  }
  TextBuilder out(budget);
  append_text(out, value);
  return out.take();
}

std::string repr(const Value& value, Budget& budget) {
  TextBuilder out(budget);
  append_repr(out, value);
  return out.take();
}

}  // namespace octet::jinja
