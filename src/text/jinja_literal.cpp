#include "text/jinja_literal.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "text/jinja_limits.h"
#include "text/jinja_unicode.h"
#include "text/utf8.h"

namespace octet::jinja {
namespace {

bool is_decimal(char c) {
  return c >= '0' && c <= '9';
}

int digit_value(char c) {
  if (is_decimal(c)) return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

// Digits of `base` with single underscores between them, from `at`; `leading`: one may come first.
size_t digits_length(std::string_view text, size_t at, int base, bool leading) {
  const size_t start = at;
  bool underscore = !leading;
  while (at < text.size()) {
    if (digit_value(text[at]) < base) {
      underscore = false;
      ++at;
    } else if (text[at] == '_' && !underscore && at + 1 < text.size() &&
               digit_value(text[at + 1]) < base) {
      underscore = true;
      ++at;
    } else {
      break;
    }
  }
  return at - start;
}

std::string without_underscores(std::string_view text) {
  std::string out(text);
  out.erase(std::remove(out.begin(), out.end(), '_'), out.end());
  return out;
}

int base_of_prefix(std::string_view text) {
  if (text.size() < 2 || text[0] != '0') return 10;
  switch (text[1]) {
    case 'b':
    case 'B':
      return 2;
    case 'o':
    case 'O':
      return 8;
    case 'x':
    case 'X':
      return 16;
    default:
      return 10;
  }
}

// Out-of-range numbers become infinity or zero, as Python reads them.
double parse_double(const std::string& digits) {
  double value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec != std::errc::result_out_of_range) return value;
  const size_t e = digits.find_first_of("eE");
  const bool tiny = e != std::string::npos ? digits[e + 1] == '-' : digits.starts_with("0");
  return tiny ? 0.0 : std::numeric_limits<double>::infinity();
}

// Reads exactly `count` hexadecimal digits from `at`.
uint32_t hex_digits(std::string_view text, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    const int digit = at + i < text.size() ? digit_value(text[at + i]) : 99;
    if (digit > 15) {
      fail(fmt::format("truncated \\{} escape: {} hexadecimal digits expected", text[at - 1],
                       count));
    }
    value = value * 16 + static_cast<uint32_t>(digit);
  }
  return value;
}

void append_escape_character(std::string& out, uint32_t c) {
  if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) {
    fail(fmt::format("the escape for U+{:04X} is no character", c));
  }
  append_utf8(out, c);
}

// Python decodes a literal after turning what is not ASCII into escapes, so that a backslash before
// such a character spells that escape out.
void append_spelled(std::string& out, uint32_t c) {
  if (c < 0x100) {
    out += fmt::format("\\x{:02x}", c);
  } else if (c < 0x10000) {
    out += fmt::format("\\u{:04x}", c);
  } else {
    out += fmt::format("\\U{:08x}", c);
  }
}

// The escape whose letter is at `at`; returns the position after it.
size_t append_escape(std::string& out, std::string_view text, size_t at) {
  const CodePoint point = code_point_at(text, at);
  if (point.value > 0x7F) {
    append_spelled(out, point.value);
    return at + point.bytes;
  }
  const char c = text[at];
  if (c >= '0' && c <= '7') {
    uint32_t value = 0;
    size_t end = at;
    while (end < text.size() && end < at + 3 && text[end] >= '0' && text[end] <= '7') {
      value = value * 8 + static_cast<uint32_t>(text[end++] - '0');
    }
    append_utf8(out, value);
    return end;
  }
  switch (c) {
    case '\n':
      return at + 1;
    case '\\':
    case '\'':
    case '"':
      out += c;
      return at + 1;
    case 'a':
      out += '\a';
      return at + 1;
    case 'b':
      out += '\b';
      return at + 1;
    case 'f':
      out += '\f';
      return at + 1;
    case 'n':
      out += '\n';
      return at + 1;
    case 'r':
      out += '\r';
      return at + 1;
    case 't':
      out += '\t';
      return at + 1;
    case 'v':
      out += '\v';
      return at + 1;
    case 'x':
      append_escape_character(out, hex_digits(text, at + 1, 2));
      return at + 3;
    case 'u':
      append_escape_character(out, hex_digits(text, at + 1, 4));
      return at + 5;
    case 'U':
      append_escape_character(out, hex_digits(text, at + 1, 8));
      return at + 9;
    case 'N':
      fail("\\N escapes (characters by name) are not supported", "use \\uXXXX");
    default:
      out += '\\';
      out += c;
      return at + 1;
  }
}

}  // namespace

size_t real_length(std::string_view text) {
  size_t at = digits_length(text, 0, 10, false);
  if (at == 0) return 0;
  const auto at_is = [&](char c) { return at < text.size() && text[at] == c; };
  bool is_real = false;
  if (at_is('.')) {
    const size_t fraction = digits_length(text, at + 1, 10, false);
    if (fraction > 0) {
      at += 1 + fraction;
      is_real = true;
    }
  }
  if (at_is('e') || at_is('E')) {
    size_t exponent = at + 1;
    if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
    const size_t digits = digits_length(text, exponent, 10, false);
    if (digits > 0) return exponent + digits;
  }
  return is_real ? at : 0;
}

size_t integer_length(std::string_view text) {
  const int base = base_of_prefix(text);
  if (base != 10) {
    const size_t digits = digits_length(text, 2, base, true);
    if (digits > 0) return 2 + digits;
  }
  if (text.empty() || !is_decimal(text[0])) return 0;
  if (text[0] != '0') return digits_length(text, 0, 10, false);
  size_t at = 1;  // only further zeros belong to a leading zero
  while (at < text.size()) {
    if (text[at] == '0') {
      ++at;
    } else if (text[at] == '_' && at + 1 < text.size() && text[at + 1] == '0') {
      at += 2;
    } else {
      break;
    }
  }
  return at;
}

double parse_real_literal(std::string_view text) {
  return parse_double(without_underscores(text));
}

std::optional<int64_t> parse_integer_literal(std::string_view text) {
  const int base = base_of_prefix(text);
  const std::string digits = without_underscores(base == 10 ? text : text.substr(2));
  int64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (result.ec != std::errc{}) return std::nullopt;
  return value;
}

std::optional<int64_t> parse_integer(std::string_view text, int64_t base) {
  text = strip(text, true, true);
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const int prefix = base_of_prefix(text);
  bool prefixed = false;
  if (prefix != 10 && (base == 0 || base == prefix)) {
    text.remove_prefix(2);
    base = prefix;
    prefixed = true;
  } else if (base == 0) {
    if (text.size() > 1 && text[0] == '0' && integer_length(text) != text.size())
      return std::nullopt;
    base = 10;
  }
  const auto radix = static_cast<int>(base);
  if (text.empty() || digits_length(text, 0, radix, prefixed) != text.size()) return std::nullopt;
  const std::string digits = fmt::format("{}{}", negative ? "-" : "", without_underscores(text));
  int64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, radix);
  if (result.ec != std::errc{}) fail(fmt::format("the integer {} does not fit 64 bits", digits));
  return value;
}

std::optional<double> parse_real(std::string_view text) {
  text = strip(text, true, true);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const std::string lower = to_lower(text);
  const double sign = negative ? -1.0 : 1.0;
  if (lower == "inf" || lower == "infinity") {
    return sign * std::numeric_limits<double>::infinity();
  }
  if (lower == "nan") return std::numeric_limits<double>::quiet_NaN();
  std::string form(text);
  if (form.starts_with('.')) form.insert(size_t{0}, 1, '0');  // ".5" and "5." are floats to Python
  const size_t dot = form.find('.');
  if (dot != std::string::npos && (dot + 1 == form.size() || !is_decimal(form[dot + 1]))) {
    if (form.size() > dot + 1 && form[dot + 1] != 'e' && form[dot + 1] != 'E') return std::nullopt;
    form.insert(dot + 1, 1, '0');
  }
  if (text == "." || form.empty()) return std::nullopt;
  if (real_length(form) != form.size() && digits_length(form, 0, 10, false) != form.size()) {
    return std::nullopt;
  }
  return sign * parse_double(without_underscores(form));
}

std::string decode_escapes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '\\' && at + 1 < text.size()) {
      at = append_escape(out, text, at + 1);
    } else {
      out += text[at++];
    }
  }
  return out;
}

}  // namespace octet::jinja
