// Attributes, subscripts and slices.
#include <algorithm>
#include <array>
#include <limits>

#include "text/jinja_operator.h"
#include "text/jinja_print.h"
#include "text/jinja_unicode.h"

namespace octet::jinja {
namespace {

// Methods that would change a list or dict: there, and never callable, in an immutable sandbox.
constexpr std::array<std::string_view, 8> kListMutators = {"append", "clear",  "extend",  "insert",
                                                           "pop",    "remove", "reverse", "sort"};
constexpr std::array<std::string_view, 5> kDictMutators = {"clear", "pop", "popitem", "setdefault",
                                                           "update"};
// Methods of Python's str that this subset lacks: calling one must not look like a typing mistake.
constexpr std::array<std::string_view, 8> kOtherTextMethods = {
    "casefold",     "encode",    "expandtabs", "format_map",
    "isidentifier", "maketrans", "translate",  "isprintable"};

template <size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Value unsafe(const Value& object, std::string_view name) {
  return Value::undefined(
      fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, object.type_name()));
}

std::string described(const Value& object) {
  if (object.is_none()) return "None";
  if (object.holds<Namespace*>()) return "jinja2.utils.Namespace object";
  return fmt::format("{} object", object.type_name());
}

Value missing_attribute(const Value& object, std::string_view name) {
  return Value::undefined(fmt::format("'{}' has no attribute '{}'", described(object), name));
}

BuiltinTable methods_of(const Value& object) {
  if (object.is_text()) return text_methods();
  if (object.is_dict()) return dict_methods();
  if (object.holds<std::shared_ptr<LoopObject>>()) return loop_methods();
  const bool counts = object.is_sequence(SequenceKind::List) ||
                      object.is_sequence(SequenceKind::Tuple) ||
                      object.is_sequence(SequenceKind::Range);
  return counts ? sequence_methods() : BuiltinTable{};
}

// A method or a field of the object itself, leaving out the keys of a dict; nullopt if none.
std::optional<Value> own_attribute(const Value& object, std::string_view name) {
  if (const Builtin* method = find_builtin(methods_of(object), name)) {
    const int depth = object.depth() + 1;
    return Value(
        Value::Data(std::make_shared<const BoundMethod>(BoundMethod{object, method, depth})));
  }
  if (object.is_dict() && is_one_of(kDictMutators, name)) return unsafe(object, name);
  if (object.is_sequence(SequenceKind::List) && is_one_of(kListMutators, name)) {
    return unsafe(object, name);
  }
  if (object.is_sequence() && object.items().group) {
    if (name == "grouper") return object.items().items[0];
    if (name == "list") return object.items().items[1];
  }
  if (object.holds<Namespace*>()) {
    if (const Value* value = object.get<Namespace*>()->find(name)) return *value;
    return std::nullopt;
  }
  if (object.holds<std::shared_ptr<LoopObject>>()) {
    Value value = object.get<std::shared_ptr<LoopObject>>()->attribute(name);
    if (!value.is_undefined() || value.get<Undefined>().why) return value;
  }
  return std::nullopt;
}

Value without_attribute(const Value& object, std::string_view name) {
  if (object.is_text() && is_one_of(kOtherTextMethods, name)) {
    return Value::undefined(fmt::format("the method '{}' of strings is not supported", name));
  }
  if (name.starts_with("__")) return unsafe(object, name);
  return missing_attribute(object, name);
}

// A Python index into `length` items; nullopt when it points outside.
std::optional<size_t> position(int64_t index, int64_t length) {
  if (index < 0) index += length;
  if (index < 0 || index >= length) return std::nullopt;
  return static_cast<size_t>(index);
}

bool is_indexable(const Value& object) {
  if (!object.is_sequence()) return object.is_text();
  const SequenceKind kind = object.items().kind;
  return kind == SequenceKind::List || kind == SequenceKind::Tuple || kind == SequenceKind::Range;
}

std::optional<Value> indexed(const Value& object, int64_t index, Budget& budget) {
  if (!is_indexable(object)) return std::nullopt;
  const auto at = position(index, *length_of(object, budget));
  if (!at) return std::nullopt;
  if (object.is_sequence()) return object.items().items[*at];
  budget.scan(object.bytes().size());
  const std::string& text = object.bytes();
  const size_t start = byte_offset(text, *at);
  const size_t end = start + byte_offset(std::string_view(text).substr(start), 1);
  return Value::text(text.substr(start, end - start), object.is_safe());
}

// Bounds of a slice over `length` items, by Python's rules.
struct Range {
  int64_t start, stop, step;
};

Range resolve(const SliceBounds& bounds, int64_t length) {
  const auto bound = [](const Value& value, int64_t fallback) {
    if (value.is_none()) return fallback;
    if (const auto integer = value.as_integer()) return *integer;
    if (value.is_undefined()) value.fail_undefined();
    fail(fmt::format("slice indices must be integers or None, not {}", value.type_name()));
  };
  const int64_t step = bound(bounds.step, 1);
  if (step == 0) fail("slice step cannot be zero");
  const int64_t low = step > 0 ? 0 : -1;
  const int64_t high = step > 0 ? length : length - 1;
  const auto clamp = [&](int64_t index) {
    if (index < 0) index = index < -length ? -1 : index + length;
    return std::clamp(index, low, high);
  };
  return Range{bounds.start.is_none() ? (step > 0 ? low : high) : clamp(bound(bounds.start, 0)),
               bounds.stop.is_none() ? (step > 0 ? high : low) : clamp(bound(bounds.stop, 0)),
               step};
}

// Calls `take` with every index of the range.
template <class Take>
void for_each_index(const Range& range, Take&& take) {
  int64_t i = range.start;
  while (range.step > 0 ? i < range.stop : i > range.stop) {
    take(static_cast<size_t>(i));
    if (__builtin_add_overflow(i, range.step, &i)) break;
  }
}

Value slice_text(const Value& object, const SliceBounds& bounds, Budget& budget) {
  const std::string_view text = object.bytes();
  budget.scan(text.size());
  budget.allocate(text.size());
  const Range range = resolve(bounds, *length_of(object, budget));
  if (range.step == 1) {
    if (range.start >= range.stop) return Value::text("", object.is_safe());
    const size_t start = byte_offset(text, static_cast<size_t>(range.start));
    const std::string_view rest = text.substr(start);
    const size_t bytes = byte_offset(rest, static_cast<size_t>(range.stop - range.start));
    return Value::text(std::string(rest.substr(0, bytes)), object.is_safe());
  }
  budget.allocate(text.size() * sizeof(size_t));
  const auto offsets = character_offsets(text);
  std::string out;
  for_each_index(range,
                 [&](size_t i) { out += text.substr(offsets[i], offsets[i + 1] - offsets[i]); });
  return Value::text(std::move(out), object.is_safe());
}

// How a slice of a range prints: the range that Python makes of it. Unsigned: a bound may lie one
// step beyond the largest integer.
std::string sliced_range(const ValueList& items, const Range& slice) {
  const auto at = [&](size_t i) { return static_cast<uint64_t>(items[i].get<int64_t>()); };
  if (items.empty()) return "range(0, 0)";
  const uint64_t unit = items.size() > 1 ? at(1) - at(0) : 1;
  const auto bound = [&](int64_t i) {
    return static_cast<int64_t>(at(0) + static_cast<uint64_t>(i) * unit);
  };
  const auto step = static_cast<int64_t>(static_cast<uint64_t>(slice.step) * unit);
  const std::string bounds = fmt::format("range({}, {}", bound(slice.start), bound(slice.stop));
  return step == 1 ? fmt::format("{})", bounds) : fmt::format("{}, {})", bounds, step);
}

}  // namespace

Value attribute_of(const Value& object, std::string_view name, Budget& budget) {
  budget.step();
  if (object.is_undefined()) object.fail_undefined();
  if (object.holds<Namespace*>()) {
    budget.step(object.get<Namespace*>()->attributes.size() / 16);
  }
  if (auto own = own_attribute(object, name)) return std::move(*own);
  if (object.is_dict()) {
    if (const Value* value = object.dict().find(name)) return *value;
  }
  return without_attribute(object, name);
}

Value item_of(const Value& object, const Value& key, Budget& budget) {
  budget.step();
  if (object.is_undefined()) object.fail_undefined();
  if (object.is_dict()) {
    const bool hashable = !key.is_dict() && !key.is_sequence(SequenceKind::List);
    const Value* value = hashable ? object.dict().find(key, budget) : nullptr;
    if (value != nullptr) return *value;
  } else if (const auto index = key.as_integer()) {
    if (auto item = indexed(object, *index, budget)) return std::move(*item);
  }
  if (key.is_text()) {
    if (auto own = own_attribute(object, key.bytes())) return std::move(*own);
    return without_attribute(object, key.bytes());
  }
  return Value::undefined(
      fmt::format("{} has no element {}", described(object), repr(key, budget)));
}

Value slice_of(const Value& object, const SliceBounds& bounds, Budget& budget) {
  budget.step();
  if (object.is_undefined()) object.fail_undefined();
  if (object.is_text()) return slice_text(object, bounds, budget);
  if (!is_indexable(object)) {
    fail(fmt::format("'{}' object cannot be sliced", object.type_name()),
         object.is_sequence() ? "make it a list first: |list" : "");
  }
  const Sequence& sequence = object.items();
  const Range range = resolve(bounds, static_cast<int64_t>(sequence.items.size()));
  ValueList items;
  for_each_index(range, [&](size_t i) {
    budget.step();
    budget.allocate(sizeof(Value));
    items.push_back(sequence.items[i]);
  });
  std::string shown;
  if (sequence.kind == SequenceKind::Range) shown = sliced_range(sequence.items, range);
  return Value::sequence(sequence.kind, std::move(items), std::move(shown));
}

}  // namespace octet::jinja
