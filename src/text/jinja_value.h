#pragma once
// Values of the template language. They follow Python where a template can see it: dicts keep their
// order, strings count code points, True == 1. Lists and dicts never change once made (templates
// run in an immutable sandbox); only a namespace does.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja_limits.h"

namespace octet::jinja {

class Value;
struct Sequence;
struct Dict;
struct Namespace;
struct Builtin;
struct BoundMethod;
struct MacroObject;
class LoopObject;
using ValueList = std::vector<Value>;

// A missing value. `why` is the message of the error that using it raises; may be null.
struct Undefined {
  std::shared_ptr<const std::string> why;
};
struct None {};

// Valid UTF-8. `safe` marks the result of `escape` or `safe`: text added to it is HTML-escaped.
struct Text {
  std::shared_ptr<const std::string> bytes;
  bool safe = false;
};

// What a sequence looks like from a template; all but List and Tuple come from builtins.
enum class SequenceKind : uint8_t { List, Tuple, Range, Keys, Values, Items, Generator };

// One value of the template language. Copies are cheap: they share what they hold.
class Value {
 public:
  using Data =
      std::variant<Undefined, None, bool, int64_t, double, Text, std::shared_ptr<const Sequence>,
                   std::shared_ptr<const Dict>, Namespace*, std::shared_ptr<const BoundMethod>,
                   const Builtin*, const MacroObject*, std::shared_ptr<LoopObject>>;

  Value() = default;  // undefined, with no message
  explicit Value(Data data) : data_(std::move(data)) {}

  static Value undefined(std::string why);
  static Value none() { return Value(None{}); }
  static Value boolean(bool value) { return Value(Data(value)); }
  static Value integer(int64_t value) { return Value(Data(value)); }
  static Value real(double value) { return Value(Data(value)); }
  static Value text(std::string bytes, bool safe = false);
  static Value list(ValueList items) { return sequence(SequenceKind::List, std::move(items)); }
  static Value tuple(ValueList items) { return sequence(SequenceKind::Tuple, std::move(items)); }
  // Throws Error{BadInput} when the items nest deeper than kMaxValueDepth. `shown`: how a Range
  // prints.
  static Value sequence(SequenceKind kind, ValueList items, std::string shown = {});
  // What `groupby` gives: a tuple of both, which are also its attributes "grouper" and "list".
  static Value group(Value grouper, Value list);

  bool is_undefined() const { return holds<Undefined>(); }
  bool is_none() const { return holds<None>(); }
  bool is_boolean() const { return holds<bool>(); }
  bool is_integer() const { return holds<int64_t>(); }
  bool is_real() const { return holds<double>(); }
  bool is_text() const { return holds<Text>(); }
  bool is_dict() const { return holds<std::shared_ptr<const Dict>>(); }
  bool is_sequence() const { return holds<std::shared_ptr<const Sequence>>(); }
  bool is_sequence(SequenceKind kind) const;
  bool is_callable() const;

  template <class T>
  bool holds() const {
    return std::holds_alternative<T>(data_);
  }
  template <class T>
  const T& get() const {
    return std::get<T>(data_);
  }
  const std::string& bytes() const { return *std::get<Text>(data_).bytes; }
  bool is_safe() const { return is_text() && std::get<Text>(data_).safe; }
  const Sequence& items() const { return *std::get<std::shared_ptr<const Sequence>>(data_); }
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  const Data& data() const { return data_; }

  // The integer of a bool or an int; nullopt for everything else.
  std::optional<int64_t> as_integer() const;
  // The number of a bool, an int or a float; nullopt for everything else.
  std::optional<double> as_real() const;

  // Python's truth value.
  bool truthy() const;
  // Levels of containers in this value; 0 for a scalar.
  int depth() const;
  // Python's name of the type: "str", "NoneType", "dict" ...
  std::string_view type_name() const;
  // The error that any use of an undefined value raises. Requires is_undefined().
  [[noreturn]] void fail_undefined() const;

 private:
  Data data_;
};

struct Sequence {
  SequenceKind kind;
  int depth;
  ValueList items;
  std::string shown;            // Range only: how it prints
  bool group = false;           // Tuple only: its items have names, see Value::group
  mutable size_t consumed = 0;  // Generator only: items already taken, by any reader
};

// An ordered dict. Built by DictBuilder; keys are any hashable value.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  std::unordered_map<std::string, size_t> index;  // by hash key; only when there are many entries
  int depth = 1;

  const Value* find(std::string_view key) const;
  const Value* find(const Value& key, Budget& budget) const;
};

// Makes a Dict; a key that comes again replaces the value and keeps its place.
class DictBuilder {
 public:
  explicit DictBuilder(Budget& budget) : budget_(budget), dict_(std::make_shared<Dict>()) {}
  void set(const Value& key, Value value);
  void set(std::string key, Value value) { set(Value::text(std::move(key)), std::move(value)); }
  Value take();

 private:
  Budget& budget_;
  std::shared_ptr<Dict> dict_;
};

// The one mutable object. The rendering owns it: values hold plain pointers, so no cycle can leak.
struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;

  const Value* find(std::string_view name) const;
  void set(std::string_view name, Value value);
};

// A method of a value, not called yet.
struct BoundMethod {
  Value self;
  const Builtin* method;
  int depth;
};

// The `loop` variable.
class LoopObject {
 public:
  virtual ~LoopObject() = default;
  virtual Value attribute(std::string_view name) = 0;  // undefined when there is none
  virtual int64_t index0() const = 0;
  virtual int64_t length() = 0;
  virtual int depth() const = 0;
};

// Reads the items of anything iterable, one by one; charges one step for each.
// The value must outlive the cursor.
class Cursor {
 public:
  // Throws Error{BadInput} when `value` is not iterable.
  Cursor(const Value& value, Budget& budget);
  bool next(Value& item);

 private:
  const Value& value_;
  Budget& budget_;
  size_t position_ = 0;
};

// Whether a `for` loop takes it.
bool is_iterable(const Value& value);
// All items of an iterable, charged as memory. Throws as Cursor does.
ValueList collect(const Value& value, Budget& budget);
// Python's len(); nullopt where it has none (numbers, generators, None).
std::optional<int64_t> length_of(const Value& value, Budget& budget);
// Python's ==.
bool equal(const Value& a, const Value& b, Budget& budget);
// Below 0, 0 or above 0 as a < b, a == b, a > b; nullopt for NaN.
// Throws Error{BadInput} naming `op` and both types when they have no order.
std::optional<int> compare(const Value& a, const Value& b, std::string_view op, Budget& budget);
// Equal for equal values: what dict keys and `unique` compare. Throws for unhashable values.
std::string hash_key(const Value& value, Budget& budget);

}  // namespace octet::jinja
