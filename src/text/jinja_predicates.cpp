// Tests: what may follow `is`.
#include <array>
#include <cmath>

#include "text/jinja_builtin.h"
#include "text/jinja_operator.h"
#include "text/jinja_print.h"
#include "text/jinja_unicode.h"
#include "text/utf8.h"

namespace octet::jinja {
namespace {

template <bool (Value::*question)() const>
Value ask(Runtime&, const Arguments& a) {
  return Value::boolean((a[0].*question)());
}

template <CompareOp op>
Value compared(Runtime& runtime, const Arguments& a) {
  return Value::boolean(apply(op, a[0], a[1], runtime.budget));
}

Value defined(Runtime&, const Arguments& a) {
  return Value::boolean(!a[0].is_undefined());
}

Value is_true(Runtime&, const Arguments& a) {
  return Value::boolean(a[0].is_boolean() && a[0].get<bool>());
}

Value is_false(Runtime&, const Arguments& a) {
  return Value::boolean(a[0].is_boolean() && !a[0].get<bool>());
}

Value number(Runtime&, const Arguments& a) {
  return Value::boolean(a[0].as_real().has_value());
}

Value sequence(Runtime&, const Arguments& a) {
  const Value& value = a[0];
  const bool indexed = value.is_sequence(SequenceKind::List) ||
                       value.is_sequence(SequenceKind::Tuple) ||
                       value.is_sequence(SequenceKind::Range);
  return Value::boolean(indexed || value.is_text() || value.is_dict() || value.is_undefined());
}

Value iterable(Runtime&, const Arguments& a) {
  return Value::boolean(is_iterable(a[0]) || a[0].holds<std::shared_ptr<LoopObject>>());
}

Value callable(Runtime&, const Arguments& a) {
  return Value::boolean(a[0].is_callable() || a[0].is_undefined());
}

Value remainder_is(Runtime& runtime, const Value& value, const Value& divisor, int64_t wanted) {
  const Value rest = apply(BinaryOp::Modulo, value, divisor, runtime.budget);
  return Value::boolean(equal(rest, Value::integer(wanted), runtime.budget));
}

Value even(Runtime& r, const Arguments& a) {
  return remainder_is(r, a[0], Value::integer(2), 0);
}
Value odd(Runtime& r, const Arguments& a) {
  return remainder_is(r, a[0], Value::integer(2), 1);
}
Value divisible(Runtime& r, const Arguments& a) {
  return remainder_is(r, a[0], a[1], 0);
}

Value in(Runtime& runtime, const Arguments& a) {
  return Value::boolean(contains(a[1], a[0], runtime.budget));
}

// Identity; containers are one object when they share their storage, small values when they are
// equal.
Value same_as(Runtime& runtime, const Arguments& a) {
  const bool same_kind = a[0].data().index() == a[1].data().index();
  if (!same_kind) return Value::boolean(false);
  if (a[0].is_dict()) return Value::boolean(&a[0].dict() == &a[1].dict());
  if (a[0].is_sequence()) return Value::boolean(&a[0].items() == &a[1].items());
  return Value::boolean(equal(a[0], a[1], runtime.budget));
}

Value has_case(Runtime& runtime, const Value& value, bool upper) {
  const std::string text = to_text(value, runtime.budget);
  return Value::boolean(upper ? is_upper_text(text) : is_lower_text(text));
}

Value upper(Runtime& runtime, const Arguments& a) {
  return has_case(runtime, a[0], true);
}
Value lower(Runtime& runtime, const Arguments& a) {
  return has_case(runtime, a[0], false);
}

Value is_filter(Runtime&, const Arguments& a) {
  return Value::boolean(a[0].is_text() && find_filter(a[0].bytes()) != nullptr);
}

Value is_test(Runtime&, const Arguments& a) {
  return Value::boolean(a[0].is_text() && find_test(a[0].bytes()) != nullptr);
}

constexpr std::array kTests = {
    Builtin{"defined", "value", defined},
    Builtin{"undefined", "value", ask<&Value::is_undefined>},
    Builtin{"none", "value", ask<&Value::is_none>},
    Builtin{"string", "value", ask<&Value::is_text>},
    Builtin{"mapping", "value", ask<&Value::is_dict>},
    Builtin{"iterable", "value", iterable},
    Builtin{"sequence", "value", sequence},
    Builtin{"number", "value", number},
    Builtin{"integer", "value", ask<&Value::is_integer>},
    Builtin{"float", "value", ask<&Value::is_real>},
    Builtin{"boolean", "value", ask<&Value::is_boolean>},
    Builtin{"true", "value", is_true},
    Builtin{"false", "value", is_false},
    Builtin{"callable", "value", callable},
    Builtin{"escaped", "value", ask<&Value::is_safe>},
    Builtin{"even", "value", even},
    Builtin{"odd", "value", odd},
    Builtin{"divisibleby", "value num", divisible},
    Builtin{"in", "value seq", in},
    Builtin{"sameas", "value other", same_as},
    Builtin{"upper", "value", upper},
    Builtin{"lower", "value", lower},
    Builtin{"filter", "value", is_filter},
    Builtin{"test", "value", is_test},
    Builtin{"eq", "a b", compared<CompareOp::Equal>},
    Builtin{"==", "a b", compared<CompareOp::Equal>},
    Builtin{"equalto", "a b", compared<CompareOp::Equal>},
    Builtin{"ne", "a b", compared<CompareOp::NotEqual>},
    Builtin{"!=", "a b", compared<CompareOp::NotEqual>},
    Builtin{"lt", "a b", compared<CompareOp::Less>},
    Builtin{"<", "a b", compared<CompareOp::Less>},
    Builtin{"lessthan", "a b", compared<CompareOp::Less>},
    Builtin{"le", "a b", compared<CompareOp::LessEqual>},
    Builtin{"<=", "a b", compared<CompareOp::LessEqual>},
    Builtin{"gt", "a b", compared<CompareOp::Greater>},
    Builtin{">", "a b", compared<CompareOp::Greater>},
    Builtin{"greaterthan", "a b", compared<CompareOp::Greater>},
    Builtin{"ge", "a b", compared<CompareOp::GreaterEqual>},
    Builtin{">=", "a b", compared<CompareOp::GreaterEqual>},
};

}  // namespace

BuiltinTable tests() {
  return kTests;
}

}  // namespace octet::jinja
