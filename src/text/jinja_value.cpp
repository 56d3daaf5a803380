#include "text/jinja_value.h"

#include <algorithm>
#include <cmath>

#include "text/jinja_builtin.h"
#include "text/jinja_unicode.h"
#include "text/utf8.h"

namespace octet::jinja {
namespace {

// More entries than this are found by hash, fewer by looking at each.
constexpr size_t kLinearEntries = 8;

std::string text_key(std::string_view text) {
  return fmt::format("s{}", text);
}

int nested_depth(int inner) {
  if (inner >= kMaxValueDepth) {
    fail(fmt::format("a value nests deeper than {} levels", kMaxValueDepth));
  }
  return inner + 1;
}

// 2^63 as a double: the first value that no int64 holds.
constexpr double kTwoTo63 = 9223372036854775808.0;

bool is_integral(double value) {
  return value >= -kTwoTo63 && value < kTwoTo63 && value == std::floor(value);
}

// Exact order of an int and a float, which a conversion to double would round.
int compare_mixed(int64_t a, double b) {
  if (b >= kTwoTo63) return -1;
  if (b < -kTwoTo63) return 1;
  const double whole = std::floor(b);
  const auto whole_integer = static_cast<int64_t>(whole);
  if (a != whole_integer) return a < whole_integer ? -1 : 1;
  return b > whole ? -1 : 0;
}

// Order of two numbers; nullopt when either is NaN.
std::optional<int> compare_numbers(const Value& a, const Value& b) {
  const auto ia = a.as_integer();
  const auto ib = b.as_integer();
  if (ia && ib) return *ia < *ib ? -1 : (*ia > *ib ? 1 : 0);
  const double da = *a.as_real();
  const double db = *b.as_real();
  if (std::isnan(da) || std::isnan(db)) return std::nullopt;
  if (ia) return compare_mixed(*ia, db);
  if (ib) return -compare_mixed(*ib, da);
  return da < db ? -1 : (da > db ? 1 : 0);
}

bool equal_items(const ValueList& a, const ValueList& b, Budget& budget) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!equal(a[i], b[i], budget)) return false;
  }
  return true;
}

bool equal_dicts(const Dict& a, const Dict& b, Budget& budget) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const Value* other = b.find(key, budget);
    if (other == nullptr || !equal(value, *other, budget)) return false;
  }
  return true;
}

}  // namespace

Value Value::undefined(std::string why) {
  return Value(Undefined{std::make_shared<const std::string>(std::move(why))});
}

Value Value::text(std::string bytes, bool safe) {
  return Value(Text{std::make_shared<const std::string>(std::move(bytes)), safe});
}

Value Value::sequence(SequenceKind kind, ValueList items, std::string shown) {
  int inner = 0;
  for (const Value& item : items) inner = std::max(inner, item.depth());
  return Value(Data(std::make_shared<const Sequence>(
      Sequence{kind, nested_depth(inner), std::move(items), std::move(shown)})));
}

Value Value::group(Value grouper, Value list) {
  const int inner = std::max(grouper.depth(), list.depth());
  ValueList items{std::move(grouper), std::move(list)};
  return Value(Data(std::make_shared<const Sequence>(
      Sequence{SequenceKind::Tuple, nested_depth(inner), std::move(items), {}, true})));
}

bool Value::is_sequence(SequenceKind kind) const {
  return is_sequence() && items().kind == kind;
}

bool Value::is_callable() const {
  return holds<std::shared_ptr<const BoundMethod>>() || holds<const Builtin*>() ||
         holds<const MacroObject*>();
}

std::optional<int64_t> Value::as_integer() const {
  if (is_boolean()) return get<bool>() ? 1 : 0;
  if (is_integer()) return get<int64_t>();
  return std::nullopt;
}

std::optional<double> Value::as_real() const {
  if (is_real()) return get<double>();
  if (const auto integer = as_integer()) return static_cast<double>(*integer);
  return std::nullopt;
}

bool Value::truthy() const {
  if (is_undefined() || is_none()) return false;
  if (is_real()) return get<double>() != 0;
  if (const auto integer = as_integer()) return *integer != 0;
  if (is_text()) return !bytes().empty();
  if (is_dict()) return !dict().entries.empty();
  if (is_sequence()) return items().kind == SequenceKind::Generator || !items().items.empty();
  return true;
}

int Value::depth() const {
  if (is_sequence()) return items().depth;
  if (is_dict()) return dict().depth;
  if (holds<std::shared_ptr<const BoundMethod>>()) {
    return get<std::shared_ptr<const BoundMethod>>()->depth;
  }
  if (holds<std::shared_ptr<LoopObject>>()) return get<std::shared_ptr<LoopObject>>()->depth();
  return 0;
}

std::string_view Value::type_name() const {
  struct Namer {
    std::string_view operator()(const Undefined&) const { return "Undefined"; }
    std::string_view operator()(const None&) const { return "NoneType"; }
    std::string_view operator()(bool) const { return "bool"; }
    std::string_view operator()(int64_t) const { return "int"; }
    std::string_view operator()(double) const { return "float"; }
    std::string_view operator()(const Text& text) const { return text.safe ? "Markup" : "str"; }
    std::string_view operator()(const std::shared_ptr<const Sequence>& sequence) const {
      switch (sequence->kind) {
        case SequenceKind::List:
          return "list";
        case SequenceKind::Tuple:
          return "tuple";
        case SequenceKind::Range:
          return "range";
        case SequenceKind::Keys:
          return "dict_keys";
        case SequenceKind::Values:
          return "dict_values";
        case SequenceKind::Items:
          return "dict_items";
        case SequenceKind::Generator:
          return "generator";
      }
      return "sequence";
    }
    std::string_view operator()(const std::shared_ptr<const Dict>&) const { return "dict"; }
    std::string_view operator()(Namespace*) const { return "Namespace"; }
    std::string_view operator()(const std::shared_ptr<const BoundMethod>&) const {
      return "method";
    }
    std::string_view operator()(const Builtin*) const { return "function"; }
    std::string_view operator()(const MacroObject*) const { return "Macro"; }
    std::string_view operator()(const std::shared_ptr<LoopObject>&) const { return "LoopContext"; }
  };
  return std::visit(Namer{}, data_);
}

void Value::fail_undefined() const {
  const auto& why = get<Undefined>().why;
  fail(why ? *why : "the value is undefined");
}

const Value* Dict::find(std::string_view key) const {
  if (!index.empty()) {
    const auto found = index.find(text_key(key));
    return found == index.end() ? nullptr : &entries[found->second].second;
  }
  for (const auto& [name, value] : entries) {
    if (name.is_text() && name.bytes() == key) return &value;
  }
  return nullptr;
}

const Value* Dict::find(const Value& key, Budget& budget) const {
  if (key.is_text()) {
    budget.scan(key.bytes().size());
    return find(key.bytes());
  }
  const std::string wanted = hash_key(key, budget);  // also refuses what cannot be a key
  if (!index.empty()) {
    const auto found = index.find(wanted);
    return found == index.end() ? nullptr : &entries[found->second].second;
  }
  for (const auto& [name, value] : entries) {
    if (equal(name, key, budget)) return &value;
  }
  return nullptr;
}

void DictBuilder::set(const Value& key, Value value) {
  Dict& dict = *dict_;
  budget_.allocate(2 * sizeof(Value));
  dict.depth = std::max({dict.depth, nested_depth(value.depth()), nested_depth(key.depth())});
  if (const Value* old = dict.find(key, budget_)) {
    *const_cast<Value*>(old) = std::move(value);  // `dict` is still ours alone
    return;
  }
  dict.entries.emplace_back(key, std::move(value));
  const size_t count = dict.entries.size();
  if (count <= kLinearEntries) return;
  for (size_t i = dict.index.empty() ? 0 : count - 1; i < count; ++i) {
    dict.index.emplace(hash_key(dict.entries[i].first, budget_), i);
  }
}

Value DictBuilder::take() {
  budget_.allocate(kObjectBytes);
  return Value(Value::Data(std::shared_ptr<const Dict>(dict_)));
}

const Value* Namespace::find(std::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Namespace::set(std::string_view name, Value value) {
  for (auto& [key, old] : attributes) {
    if (key != name) continue;
    old = std::move(value);
    return;
  }
  attributes.emplace_back(std::string(name), std::move(value));
}

bool is_iterable(const Value& value) {
  return value.is_undefined() || value.is_text() || value.is_dict() || value.is_sequence();
}

Cursor::Cursor(const Value& value, Budget& budget) : value_(value), budget_(budget) {
  if (!is_iterable(value)) fail(fmt::format("'{}' object is not iterable", value.type_name()));
}

bool Cursor::next(Value& item) {
  budget_.step();
  if (value_.is_sequence()) {
    const Sequence& sequence = value_.items();
    size_t& at = sequence.kind == SequenceKind::Generator ? sequence.consumed : position_;
    if (at >= sequence.items.size()) return false;
    item = sequence.items[at++];
    return true;
  }
  if (value_.is_dict()) {
    if (position_ >= value_.dict().entries.size()) return false;
    item = value_.dict().entries[position_++].first;
    return true;
  }
  if (!value_.is_text() || position_ >= value_.bytes().size()) return false;
  const uint32_t bytes = code_point_at(value_.bytes(), position_).bytes;
  budget_.allocate(kObjectBytes);
  item = Value::text(value_.bytes().substr(position_, bytes));
  position_ += bytes;
  return true;
}

ValueList collect(const Value& value, Budget& budget) {
  ValueList items;
  Cursor cursor(value, budget);
  Value item;
  while (cursor.next(item)) {
    budget.allocate(sizeof(Value));
    items.push_back(std::move(item));
  }
  return items;
}

std::optional<int64_t> length_of(const Value& value, Budget& budget) {
  if (value.is_undefined()) return 0;
  if (value.is_text()) {
    budget.scan(value.bytes().size());
    return count_characters(value.bytes());
  }
  if (value.is_dict()) return static_cast<int64_t>(value.dict().entries.size());
  if (value.is_sequence() && value.items().kind != SequenceKind::Generator) {
    return static_cast<int64_t>(value.items().items.size());
  }
  if (value.holds<std::shared_ptr<LoopObject>>()) {
    return value.get<std::shared_ptr<LoopObject>>()->length();
  }
  return std::nullopt;
}

bool equal(const Value& a, const Value& b, Budget& budget) {
  budget.step();
  if (a.as_real() && b.as_real()) return compare_numbers(a, b) == 0;
  if (a.data().index() != b.data().index()) return false;
  if (a.is_undefined() || a.is_none()) return true;
  if (a.is_text()) {
    budget.scan(std::min(a.bytes().size(), b.bytes().size()));
    return a.bytes() == b.bytes();
  }
  if (a.is_dict()) return &a.dict() == &b.dict() || equal_dicts(a.dict(), b.dict(), budget);
  if (a.is_sequence()) {
    if (&a.items() == &b.items()) return true;
    const SequenceKind kind = a.items().kind;
    const bool by_identity = kind == SequenceKind::Generator || kind == SequenceKind::Values;
    return kind == b.items().kind && !by_identity &&
           equal_items(a.items().items, b.items().items, budget);
  }
  if (a.holds<Namespace*>()) return a.get<Namespace*>() == b.get<Namespace*>();
  if (a.holds<const Builtin*>()) return a.get<const Builtin*>() == b.get<const Builtin*>();
  if (a.holds<const MacroObject*>()) {
    return a.get<const MacroObject*>() == b.get<const MacroObject*>();
  }
  if (a.holds<std::shared_ptr<LoopObject>>()) {
    return a.get<std::shared_ptr<LoopObject>>() == b.get<std::shared_ptr<LoopObject>>();
  }
  return a.get<std::shared_ptr<const BoundMethod>>() == b.get<std::shared_ptr<const BoundMethod>>();
}

std::optional<int> compare(const Value& a, const Value& b, std::string_view op, Budget& budget) {
  budget.step();
  if (a.is_undefined()) a.fail_undefined();
  if (b.is_undefined()) b.fail_undefined();
  if (a.as_real() && b.as_real()) return compare_numbers(a, b);
  if (a.is_text() && b.is_text()) {
    budget.scan(std::min(a.bytes().size(), b.bytes().size()));
    const int order = a.bytes().compare(b.bytes());  // UTF-8 keeps the order of code points
    return order < 0 ? -1 : (order > 0 ? 1 : 0);
  }
  const bool lists = a.is_sequence(SequenceKind::List) && b.is_sequence(SequenceKind::List);
  const bool tuples = a.is_sequence(SequenceKind::Tuple) && b.is_sequence(SequenceKind::Tuple);
  if (lists || tuples) {
    const ValueList& x = a.items().items;
    const ValueList& y = b.items().items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!equal(x[i], y[i], budget)) return compare(x[i], y[i], op, budget);
    }
    return x.size() < y.size() ? -1 : (x.size() > y.size() ? 1 : 0);
  }
  fail(fmt::format("'{}' not supported between instances of '{}' and '{}'", op, a.type_name(),
                   b.type_name()));
}

std::string hash_key(const Value& value, Budget& budget) {
  budget.step();
  if (value.is_text()) {
    budget.scan(value.bytes().size());
    return text_key(value.bytes());
  }
  if (const auto integer = value.as_integer()) return fmt::format("n{}", *integer);
  if (value.is_real()) {
    const double number = value.get<double>();
    if (is_integral(number)) return fmt::format("n{}", static_cast<int64_t>(number));
    return fmt::format("f{}", number);
  }
  if (value.is_none()) return "N";
  if (value.is_undefined()) return "U";
  if (value.is_sequence(SequenceKind::Tuple)) {
    std::string key = "t";
    for (const Value& item : value.items().items) {
      const std::string part = hash_key(item, budget);
      key += fmt::format("{}:{}", part.size(), part);
      budget.check_text(key.size());
      budget.allocate(part.size());
    }
    return key;
  }
  if (value.is_sequence(SequenceKind::List) || value.is_dict()) {
    fail(fmt::format("unhashable type: '{}'", value.type_name()));
  }
  fail(fmt::format("a {} cannot be a key here", value.type_name()));
}

}  // namespace octet::jinja
