#pragma once
// What operators and subscripts do to values, by Python's rules.
#include <string_view>

#include "text/jinja_ast.h"
#include "text/jinja_builtin.h"

namespace octet::jinja {

// left op right. Throws Error{BadInput} for types that do not take it, division by zero and
// integers beyond 64 bits.
Value apply(BinaryOp op, const Value& left, const Value& right, Budget& budget);
Value apply(UnaryOp op, const Value& operand);
bool apply(CompareOp op, const Value& left, const Value& right, Budget& budget);

// Whether `needle in haystack`: a part of a string, an item, a key of a dict.
bool contains(const Value& haystack, const Value& needle, Budget& budget);

// object.name: a method or attribute first, then the key of a dict; undefined when there is none.
// Throws when the object itself is undefined.
Value attribute_of(const Value& object, std::string_view name, Budget& budget);
// object[key]: an item first, then what object.key is.
Value item_of(const Value& object, const Value& key, Budget& budget);

// object[start:stop:step]; None stands for a bound that is not written.
struct SliceBounds {
  Value start, stop, step;
};
Value slice_of(const Value& object, const SliceBounds& bounds, Budget& budget);

}  // namespace octet::jinja
