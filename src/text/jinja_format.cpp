#include "text/jinja_format.h"

#include <algorithm>
#include <cmath>

#include "text/jinja_print.h"
#include "text/jinja_unicode.h"

namespace octet::jinja {
namespace {

constexpr int64_t kMaxPrecision = 1000;  // digits; more tells nothing about a double

std::string grouped(std::string digits) {
  for (size_t at = digits.find_first_not_of("0123456789") == std::string::npos
                       ? digits.size()
                       : digits.find_first_not_of("0123456789");
       at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

uint64_t magnitude_of(int64_t value) {
  return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

std::string integer_digits(uint64_t value, const FormatSpec& spec) {
  switch (spec.type) {
    case 'x':
      return fmt::format("{}{:x}", spec.alternate ? "0x" : "", value);
    case 'X':
      return fmt::format("{}{:X}", spec.alternate ? "0X" : "", value);
    case 'o':
      return fmt::format("{}{:o}", spec.alternate ? "0o" : "", value);
    case 'b':
      return fmt::format("{}{:b}", spec.alternate ? "0b" : "", value);
    default:
      return fmt::format("{}", value);
  }
}

std::string real_digits(double value, const FormatSpec& spec) {
  const bool upper = spec.type == 'F' || spec.type == 'E' || spec.type == 'G';
  if (std::isnan(value)) return std::string(upper ? "NAN" : "nan", 3);
  if (std::isinf(value)) return std::string(upper ? "INF" : "inf", 3);
  if (spec.precision > kMaxPrecision) {
    fail(fmt::format("the precision is {}, at most {} digits are allowed", spec.precision,
                     kMaxPrecision));
  }
  const int digits = spec.precision < 0 ? 6 : static_cast<int>(spec.precision);
  switch (spec.type) {
    case 'e':
      return fmt::format("{:.{}e}", value, digits);
    case 'E':
      return fmt::format("{:.{}E}", value, digits);
    case 'g':
      return fmt::format("{:.{}g}", value, digits);
    case 'G':
      return fmt::format("{:.{}G}", value, digits);
    case '%':
      return fmt::format("{:.{}f}%", value * 100, digits);
    default:
      return fmt::format("{:.{}f}", value, digits);
  }
}

bool is_integer_type(char type) {
  return std::string_view("diuxXob").find(type) != std::string_view::npos;
}

// The unsigned digits of a number, and whether it is negative.
std::pair<std::string, bool> digits_of(const Value& value, const FormatSpec& spec) {
  const auto integer = value.as_integer();
  const auto real = value.as_real();
  if (!real) {
    if (value.is_undefined()) value.fail_undefined();
    fail(fmt::format("%{} format: a number is required, not {}", spec.type, value.type_name()));
  }
  if (is_integer_type(spec.type)) {
    if (integer) return {integer_digits(magnitude_of(*integer), spec), *integer < 0};
    fail(fmt::format("%{} format: an integer is required, not float", spec.type));
  }
  if (spec.type == 0) {
    if (integer) return {fmt::format("{}", magnitude_of(*integer)), *integer < 0};
    if (spec.precision < 0) return {real_text(std::fabs(*real)), std::signbit(*real)};
    FormatSpec general = spec;
    general.type = 'g';
    general.precision = std::max<int64_t>(spec.precision, 1);
    std::string digits = real_digits(std::fabs(*real), general);
    return {digits, std::signbit(*real)};
  }
  return {real_digits(std::fabs(*real), spec), std::signbit(*real) && !std::isnan(*real)};
}

}  // namespace

void append_padded(TextBuilder& out, std::string_view text, const FormatSpec& spec) {
  Budget& budget = out.budget();
  budget.scan(text.size());
  if (spec.precision >= 0) {
    text = text.substr(0, byte_offset(text, static_cast<size_t>(spec.precision)));
  }
  const int64_t characters = count_characters(text);
  const auto missing = static_cast<uint64_t>(std::max<int64_t>(spec.width - characters, 0));
  const uint64_t before = spec.align == '>' ? missing : (spec.align == '^' ? missing / 2 : 0);
  out.repeat(spec.fill, before);
  out += text;
  out.repeat(spec.fill, missing - before);
}

void append_number(TextBuilder& out, const Value& value, const FormatSpec& spec) {
  auto [digits, negative] = digits_of(value, spec);
  if (spec.grouped) digits = grouped(std::move(digits));
  std::string sign;
  if (negative) {
    sign.assign(1, '-');
  } else if (spec.sign != '-') {
    sign = spec.sign;
  }
  FormatSpec padding = spec;
  padding.precision = -1;
  if (spec.align != '=') {
    if (padding.align == 0) padding.align = '>';
    append_padded(out, sign + digits, padding);
    return;
  }
  size_t prefix = 0;  // the fill goes after "0x"
  if (spec.alternate && digits.size() > 1 && std::isalpha(static_cast<unsigned char>(digits[1]))) {
    prefix = 2;
  }
  out += sign + digits.substr(0, prefix);
  padding.align = '>';
  padding.width -= static_cast<int64_t>(sign.size() + prefix);
  append_padded(out, std::string_view(digits).substr(prefix), padding);
}

namespace {

// The state of one "..." % value.
class PercentFormatter {
 public:
  PercentFormatter(const Value& format, const Value& values, Budget& budget)
      : format_(format.bytes()), safe_(format.is_safe()), values_(values), out_(budget) {}

  std::string run() {
    for (size_t plain = 0;;) {
      const size_t percent = std::min(format_.find('%', plain), format_.size());
      out_ += format_.substr(plain, percent - plain);
      if (percent == format_.size()) break;
      at_ = percent + 1;
      conversion();
      plain = at_;
    }
    // What can be looked up by key need not be used up: it might have been meant for %(key)s.
    const bool has_keys = values_.is_dict() || values_.is_sequence(SequenceKind::List) ||
                          values_.is_sequence(SequenceKind::Range) || values_.is_undefined();
    const bool used_up =
        is_tuple() ? next_ == values_.items().items.size() : (next_ > 0 || has_keys);
    if (!used_up) fail("not all arguments converted during string formatting");
    return out_.take();
  }

 private:
  bool is_tuple() const { return values_.is_sequence(SequenceKind::Tuple); }

  char peek() const {
    if (at_ >= format_.size()) fail("incomplete format");
    return format_[at_];
  }

  Value next_value() {
    const size_t count = is_tuple() ? values_.items().items.size() : 1;
    if (next_ >= count) fail("not enough arguments for format string");
    return is_tuple() ? values_.items().items[next_++] : (++next_, values_);
  }

  Value keyed_value() {
    const size_t end = format_.find(')', at_);
    if (end == std::string_view::npos) fail("incomplete format key");
    const std::string_view key = format_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    if (!values_.is_dict()) fail("format requires a mapping");
    const Value* value = values_.dict().find(key);
    if (value == nullptr) fail(fmt::format("the format's key '{}' is not in the dict", key));
    next_ = 1;
    return *value;
  }

  int64_t number_or_star() {
    if (at_ < format_.size() && format_[at_] == '*') {
      ++at_;
      const auto value = next_value().as_integer();
      if (!value) fail("* wants int");
      return *value;
    }
    int64_t value = 0;
    while (at_ < format_.size() && format_[at_] >= '0' && format_[at_] <= '9') {
      value = std::min<int64_t>(value * 10 + (format_[at_++] - '0'), int64_t{1} << 40);
    }
    return value;
  }

  void conversion() {
    out_.budget().step();
    std::optional<Value> value;
    if (peek() == '(') value = keyed_value();
    FormatSpec spec;
    spec.align = '>';
    bool left = false;
    bool zero = false;
    for (; std::string_view("-+ #0").find(peek()) != std::string_view::npos; ++at_) {
      left |= format_[at_] == '-';
      zero |= format_[at_] == '0';
      spec.alternate |= format_[at_] == '#';
      if (format_[at_] == '+') spec.sign = '+';
      if (format_[at_] == ' ' && spec.sign != '+') spec.sign = ' ';
    }
    spec.width = number_or_star();
    if (spec.width < 0) {
      left = true;
      spec.width = spec.width < -(int64_t{1} << 40) ? int64_t{1} << 40 : -spec.width;
    }
    if (peek() == '.') {
      ++at_;
      spec.precision = std::max<int64_t>(number_or_star(), 0);
    }
    while (peek() == 'l' || peek() == 'h' || peek() == 'L') ++at_;
    spec.type = peek();
    ++at_;
    if (spec.type == '%') {
      out_ += '%';
      return;
    }
    if (left) spec.align = '<';
    if (!value) value = next_value();
    append(*value, spec, zero && !left);
  }

  void append(const Value& value, FormatSpec spec, bool zero) {
    Budget& budget = out_.budget();
    if (spec.type == 's' || spec.type == 'r') {
      std::string text = spec.type == 's' ? to_text(value, budget) : repr(value, budget);
      if (safe_ && !value.is_safe()) text = escape_html(text);
      append_padded(out_, text, spec);
      return;
    }
    if (std::string_view("diuxXofFeEgG").find(spec.type) == std::string_view::npos) {
      fail(fmt::format("unsupported format character '{}'", spec.type));
    }
    if (zero) {
      spec.align = '=';
      spec.fill.assign(1, '0');
    }
    const bool decimal = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
    if (decimal && value.is_real()) {  // %d cuts a float
      const double whole = std::trunc(value.get<double>());
      if (!(std::fabs(whole) < 9.2e18)) fail(fmt::format("%d cannot hold {}", whole));
      append_number(out_, Value::integer(static_cast<int64_t>(whole)), spec);
      return;
    }
    append_number(out_, value, spec);
  }

  std::string_view format_;
  bool safe_;
  const Value& values_;
  TextBuilder out_;
  size_t at_ = 0;
  size_t next_ = 0;
};

}  // namespace

Value format_percent(const Value& left, const Value& right, Budget& budget) {
  return Value::text(PercentFormatter(left, right, budget).run(), left.is_safe());
}

}  // namespace octet::jinja
