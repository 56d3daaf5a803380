#include "text/jinja_operator.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "text/jinja_format.h"
#include "text/jinja_print.h"
#include "text/jinja_unicode.h"

namespace octet::jinja {
namespace {

std::string_view symbol(BinaryOp op) {
  switch (op) {
    case BinaryOp::Add:
      return "+";
    case BinaryOp::Subtract:
      return "-";
    case BinaryOp::Multiply:
      return "*";
    case BinaryOp::Divide:
      return "/";
    case BinaryOp::FloorDivide:
      return "//";
    case BinaryOp::Modulo:
      return "%";
    case BinaryOp::Power:
      return "**";
  }
  return "?";
}

[[noreturn]] void unsupported(BinaryOp op, const Value& left, const Value& right) {
  fail(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", symbol(op),
                   left.type_name(), right.type_name()));
}

[[noreturn]] void overflow(BinaryOp op, int64_t a, int64_t b) {
  fail(fmt::format("{} {} {} does not fit a 64-bit integer", a, symbol(op), b));
}

int64_t floor_divide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Value integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fail("0 cannot be raised to a negative power");
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  int64_t factor = base;
  for (int64_t left = exponent; left > 0; left >>= 1) {
    if ((left & 1) != 0 && __builtin_mul_overflow(result, factor, &result)) {
      overflow(BinaryOp::Power, base, exponent);
    }
    if (left > 1 && __builtin_mul_overflow(factor, factor, &factor)) {
      overflow(BinaryOp::Power, base, exponent);
    }
  }
  return Value::integer(result);
}

Value apply_integers(BinaryOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case BinaryOp::Add:
      if (__builtin_add_overflow(a, b, &result)) overflow(op, a, b);
      return Value::integer(result);
    case BinaryOp::Subtract:
      if (__builtin_sub_overflow(a, b, &result)) overflow(op, a, b);
      return Value::integer(result);
    case BinaryOp::Multiply:
      if (__builtin_mul_overflow(a, b, &result)) overflow(op, a, b);
      return Value::integer(result);
    case BinaryOp::Divide:
      if (b == 0) fail("division by zero");
      return Value::real(static_cast<double>(a) / static_cast<double>(b));
    case BinaryOp::FloorDivide:
    case BinaryOp::Modulo:
      if (b == 0) fail("integer division or modulo by zero");
      if (b == -1) {  // the one divisor whose quotient can overflow
        if (op == BinaryOp::Modulo) return Value::integer(0);
        if (a == std::numeric_limits<int64_t>::min()) overflow(op, a, b);
        return Value::integer(-a);
      }
      result = floor_divide(a, b);
      return Value::integer(op == BinaryOp::Modulo ? a - result * b : result);
    case BinaryOp::Power:
      return integer_power(a, b);
  }
  return Value();
}

// The remainder takes the sign of the divisor.
double floor_modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

Value apply_reals(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::Add:
      return Value::real(a + b);
    case BinaryOp::Subtract:
      return Value::real(a - b);
    case BinaryOp::Multiply:
      return Value::real(a * b);
    case BinaryOp::Divide:
      if (b == 0) fail("float division by zero");
      return Value::real(a / b);
    case BinaryOp::FloorDivide:
      if (b == 0) fail("float floor division by zero");
      return Value::real(std::floor((a - floor_modulo(a, b)) / b + 0.5));
    case BinaryOp::Modulo:
      if (b == 0) fail("float modulo by zero");
      return Value::real(floor_modulo(a, b));
    case BinaryOp::Power: {
      if (a == 0 && b < 0) fail("0.0 cannot be raised to a negative power");
      const double result = std::pow(a, b);
      if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) {
        fail("a negative number cannot be raised to a fractional power");
      }
      if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
        fail("the power is too large for a float");
      }
      return Value::real(result);
    }
  }
  return Value();
}

// Text beside markup is escaped.
std::string_view escaped_beside(const Value& value, bool escape, std::string& storage) {
  if (!escape || value.is_safe()) return value.bytes();
  storage = escape_html(value.bytes());
  return storage;
}

Value add_texts(const Value& left, const Value& right, Budget& budget) {
  const bool safe = left.is_safe() || right.is_safe();
  std::string left_storage;
  std::string right_storage;
  TextBuilder out(budget);
  out += escaped_beside(left, safe, left_storage);
  out += escaped_beside(right, safe, right_storage);
  return Value::text(out.take(), safe);
}

Value add_sequences(const Sequence& left, const Sequence& right, Budget& budget) {
  budget.allocate((left.items.size() + right.items.size()) * sizeof(Value));
  ValueList items = left.items;
  items.insert(items.end(), right.items.begin(), right.items.end());
  return Value::sequence(left.kind, std::move(items));
}

Value repeat(const Value& value, int64_t count, Budget& budget) {
  const auto times = static_cast<uint64_t>(std::max<int64_t>(count, 0));
  if (value.is_text()) {
    TextBuilder out(budget);
    out.repeat(value.bytes(), times);
    return Value::text(out.take(), value.is_safe());
  }
  const Sequence& sequence = value.items();
  ValueList items;
  if (!sequence.items.empty()) {
    budget.allocate(std::min(times, budget.limits().memory_bytes) * sizeof(Value));
    for (uint64_t i = 0; i < times; ++i) {
      budget.allocate(sequence.items.size() * sizeof(Value));
      items.insert(items.end(), sequence.items.begin(), sequence.items.end());
    }
  }
  return Value::sequence(sequence.kind, std::move(items));
}

bool is_list_or_tuple(const Value& value) {
  return value.is_sequence(SequenceKind::List) || value.is_sequence(SequenceKind::Tuple);
}

bool is_repeatable(const Value& value) {
  return value.is_text() || is_list_or_tuple(value);
}

}  // namespace

Value apply(BinaryOp op, const Value& left, const Value& right, Budget& budget) {
  if (op == BinaryOp::Modulo && left.is_text()) return format_percent(left, right, budget);
  if (left.is_undefined()) left.fail_undefined();
  if (right.is_undefined()) right.fail_undefined();
  const auto a = left.as_real();
  const auto b = right.as_real();
  if (a && b) {
    const auto ia = left.as_integer();
    const auto ib = right.as_integer();
    return ia && ib ? apply_integers(op, *ia, *ib) : apply_reals(op, *a, *b);
  }
  if (op == BinaryOp::Add) {
    if (left.is_text() && right.is_text()) return add_texts(left, right, budget);
    if (is_list_or_tuple(left) && right.is_sequence(left.items().kind)) {
      return add_sequences(left.items(), right.items(), budget);
    }
  }
  if (op == BinaryOp::Multiply) {
    if (is_repeatable(left) && right.as_integer()) return repeat(left, *right.as_integer(), budget);
    if (is_repeatable(right) && left.as_integer()) return repeat(right, *left.as_integer(), budget);
  }
  unsupported(op, left, right);
}

Value apply(UnaryOp op, const Value& operand) {
  if (op == UnaryOp::Not) return Value::boolean(!operand.truthy());
  if (operand.is_undefined()) operand.fail_undefined();
  const bool minus = op == UnaryOp::Minus;
  if (const auto integer = operand.as_integer()) {
    if (minus && *integer == std::numeric_limits<int64_t>::min()) {
      fail(fmt::format("-({}) does not fit a 64-bit integer", *integer));
    }
    return Value::integer(minus ? -*integer : *integer);
  }
  if (operand.is_real()) return Value::real(minus ? -operand.get<double>() : operand.get<double>());
  fail(fmt::format("bad operand type for unary {}: '{}'", minus ? "-" : "+", operand.type_name()));
}

bool contains(const Value& haystack, const Value& needle, Budget& budget) {
  if (haystack.is_text()) {
    if (!needle.is_text()) {
      if (needle.is_undefined()) needle.fail_undefined();
      fail(
          fmt::format("'in <string>' requires string as left operand, not {}", needle.type_name()));
    }
    budget.scan(haystack.bytes().size());
    return find_text(haystack.bytes(), needle.bytes()) != std::string_view::npos;
  }
  if (haystack.is_dict()) return haystack.dict().find(needle, budget) != nullptr;
  if (!is_iterable(haystack)) {
    fail(fmt::format("argument of type '{}' is not iterable", haystack.type_name()));
  }
  Cursor cursor(haystack, budget);
  Value item;
  while (cursor.next(item)) {
    if (equal(item, needle, budget)) return true;
  }
  return false;
}

bool apply(CompareOp op, const Value& left, const Value& right, Budget& budget) {
  const auto order = [&](std::string_view spelled) {
    return compare(left, right, spelled, budget);
  };
  switch (op) {
    case CompareOp::Equal:
      return equal(left, right, budget);
    case CompareOp::NotEqual:
      return !equal(left, right, budget);
    case CompareOp::Less:
      return order("<").value_or(1) < 0;
    case CompareOp::LessEqual:
      return order("<=").value_or(1) <= 0;
    case CompareOp::Greater:
      return order(">").value_or(-1) > 0;
    case CompareOp::GreaterEqual:
      return order(">=").value_or(-1) >= 0;
    case CompareOp::In:
      return contains(right, left, budget);
    case CompareOp::NotIn:
      return !contains(right, left, budget);
  }
  return false;
}

}  // namespace octet::jinja
