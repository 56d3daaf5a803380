// Filters that work on lists, dicts and other iterables.
#include <algorithm>
#include <array>
#include <unordered_set>

#include "text/jinja_builtin.h"
#include "text/jinja_literal.h"
#include "text/jinja_operator.h"
#include "text/jinja_print.h"
#include "text/jinja_unicode.h"

namespace octet::jinja {
namespace {

// "address.city.0" or an index: looks into an item step by step.
class AttributePath {
 public:
  explicit AttributePath(const Value& attribute) {
    if (attribute.is_none()) return;
    if (!attribute.is_text()) {
      parts_.push_back(attribute);
      return;
    }
    std::string_view rest = attribute.bytes();
    while (true) {
      const size_t end = std::min(rest.find('.'), rest.size());
      parts_.push_back(part(rest.substr(0, end)));
      if (end == rest.size()) break;
      rest.remove_prefix(end + 1);
    }
  }

  // `fallback` takes the place of what is missing, unless it is None.
  Value get(Value item, const Value& fallback, Budget& budget) const {
    for (const Value& key : parts_) {
      item = item_of(item, key, budget);
      if (item.is_undefined() && !fallback.is_none()) item = fallback;
    }
    return item;
  }

 private:
  static Value part(std::string_view text) {
    if (!text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos) {
      if (const auto index = parse_integer(text, 10)) return Value::integer(*index);
    }
    return Value::text(std::string(text));
  }

  ValueList parts_;
};

Value given_or_none(const Arguments& a, size_t i) {
  return a.has(i) ? a[i] : Value::none();
}

Value folded(const Value& value, bool case_sensitive, Budget& budget) {
  if (case_sensitive || !value.is_text()) return value;
  budget.scan(value.bytes().size());
  budget.allocate(value.bytes().size());
  return Value::text(to_lower(value.bytes()));
}

// A single-use sequence of what was computed already.
Value generator(ValueList items) {
  return Value::sequence(SequenceKind::Generator, std::move(items));
}

Value length(Runtime& runtime, const Arguments& a) {
  const auto length = length_of(a[0], runtime.budget);
  if (!length) {
    fail(fmt::format("object of type '{}' has no len()", a[0].type_name()),
         a[0].is_sequence() ? "make it a list first: |list" : "");
  }
  return Value::integer(*length);
}

Value first(Runtime& runtime, const Arguments& a) {
  Cursor cursor(a[0], runtime.budget);
  Value item;
  if (cursor.next(item)) return item;
  return Value::undefined("No first item, sequence was empty.");
}

ValueList reversible(Runtime& runtime, const Value& value, std::string_view what) {
  if (value.is_sequence(SequenceKind::Generator) || !is_iterable(value) || value.is_undefined()) {
    if (value.is_undefined()) return {};
    fail(fmt::format("{}: '{}' object is not reversible", what, value.type_name()),
         "make it a list first: |list");
  }
  return collect(value, runtime.budget);
}

Value last(Runtime& runtime, const Arguments& a) {
  ValueList items = reversible(runtime, a[0], "last");
  if (!items.empty()) return items.back();
  return Value::undefined("No last item, sequence was empty.");
}

Value join(Runtime& runtime, const Arguments& a) {
  Budget& budget = runtime.budget;
  const AttributePath path(given_or_none(a, 2));
  const std::string separator = a.has(1) ? to_text(a[1], budget) : "";
  Cursor cursor(a[0], budget);
  TextBuilder out(budget);
  Value item;
  for (bool first_item = true; cursor.next(item); first_item = false) {
    if (!first_item) out += separator;
    append_text(out, path.get(std::move(item), Value::none(), budget));
  }
  return Value::text(out.take());
}

Value list(Runtime& runtime, const Arguments& a) {
  return Value::list(collect(a[0], runtime.budget));
}

Value reverse(Runtime& runtime, const Arguments& a) {
  if (a[0].is_text()) {
    return slice_of(a[0], {Value::none(), Value::none(), Value::integer(-1)}, runtime.budget);
  }
  ValueList items = collect(a[0], runtime.budget);
  std::reverse(items.begin(), items.end());
  // What cannot be read backwards in Python comes back as a list.
  if (a[0].is_sequence(SequenceKind::Generator)) return Value::list(std::move(items));
  return generator(std::move(items));
}

// Sorts by keys, keeping the order of equal ones. Requires as many keys as items.
ValueList sort_by_keys(ValueList items, const std::vector<ValueList>& keys, bool descending,
                       Budget& budget) {
  budget.allocate(items.size() * sizeof(size_t) * 2);
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto less = [&](size_t x, size_t y) {
    for (size_t k = 0; k < keys[x].size(); ++k) {
      if (equal(keys[x][k], keys[y][k], budget)) continue;
      return compare(keys[x][k], keys[y][k], "<", budget).value_or(0) < 0;
    }
    return false;
  };
  if (descending) {
    std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) { return less(y, x); });
  } else {
    std::stable_sort(order.begin(), order.end(), less);
  }
  ValueList sorted;
  sorted.reserve(items.size());
  for (const size_t i : order) sorted.push_back(std::move(items[i]));
  return sorted;
}

Value sort(Runtime& runtime, const Arguments& a) {
  Budget& budget = runtime.budget;
  const bool case_sensitive = a.has(2) && a[2].truthy();
  std::vector<AttributePath> paths;
  const Value attribute = given_or_none(a, 3);
  if (attribute.is_text()) {
    std::string_view rest = attribute.bytes();
    for (size_t end = 0; end != std::string_view::npos;
         rest.remove_prefix(std::min(end, rest.size()))) {
      end = rest.find(',');
      paths.emplace_back(Value::text(std::string(rest.substr(0, end))));
      if (end != std::string_view::npos) ++end;
      if (end == std::string_view::npos) break;
    }
  } else {
    paths.emplace_back(attribute);
  }
  ValueList items = collect(a[0], budget);
  std::vector<ValueList> keys(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    for (const AttributePath& path : paths) {
      budget.allocate(sizeof(Value));
      keys[i].push_back(folded(path.get(items[i], Value::none(), budget), case_sensitive, budget));
    }
  }
  return Value::list(sort_by_keys(std::move(items), keys, a.has(1) && a[1].truthy(), budget));
}

// As jinja2: sorted by the attribute, neighbours with equal ones together. The name of a group is
// the attribute of its first item, in the case that it has there.
Value group_by(Runtime& runtime, const Arguments& a) {
  Budget& budget = runtime.budget;
  const AttributePath path(a[1]);
  const Value fallback = given_or_none(a, 2);
  const bool case_sensitive = a.has(3) && a[3].truthy();
  const ValueList items = collect(a[0], budget);
  budget.allocate(items.size() * (sizeof(Value) + 2 * sizeof(size_t)));
  ValueList keys;
  std::vector<size_t> order;
  for (const Value& item : items) {
    order.push_back(order.size());
    keys.push_back(folded(path.get(item, fallback, budget), case_sensitive, budget));
  }
  // Unlike `sort` it asks for an order even of equal keys: undefined ones have none.
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
    return compare(keys[x], keys[y], "<", budget).value_or(0) < 0;
  });
  ValueList groups;
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && equal(keys[order[begin]], keys[order[end]], budget)) ++end;
    budget.allocate((end - begin + 4) * sizeof(Value));
    ValueList members;
    for (size_t i = begin; i < end; ++i) members.push_back(items[order[i]]);
    Value grouper = path.get(members.front(), fallback, budget);
    groups.push_back(Value::group(std::move(grouper), Value::list(std::move(members))));
    begin = end;
  }
  return Value::list(std::move(groups));
}

Value dict_sort(Runtime& runtime, const Arguments& a) {
  Budget& budget = runtime.budget;
  if (a[0].is_undefined()) a[0].fail_undefined();
  if (!a[0].is_dict()) fail(fmt::format("dictsort: expected a dict, got a {}", a[0].type_name()));
  const std::string_view by = a.has(2) ? std::string_view(a.text(2, "dictsort: by")) : "key";
  if (by != "key" && by != "value") {
    fail(fmt::format("dictsort: by must be key or value, got '{}'", by));
  }
  ValueList items;
  std::vector<ValueList> keys;
  for (const auto& [key, value] : a[0].dict().entries) {
    budget.allocate(4 * sizeof(Value));
    items.push_back(Value::tuple({key, value}));
    keys.push_back({folded(by == "key" ? key : value, a.has(1) && a[1].truthy(), budget)});
  }
  return Value::list(sort_by_keys(std::move(items), keys, a.has(3) && a[3].truthy(), budget));
}

Value items(Runtime& runtime, const Arguments& a) {
  ValueList pairs;
  if (a[0].is_undefined()) return generator({});
  if (!a[0].is_dict()) fail("Can only get item pairs from a mapping.");
  for (const auto& [key, value] : a[0].dict().entries) {
    runtime.budget.allocate(3 * sizeof(Value));
    pairs.push_back(Value::tuple({key, value}));
  }
  return generator(std::move(pairs));
}

Value unique(Runtime& runtime, const Arguments& a) {
  Budget& budget = runtime.budget;
  const AttributePath path(given_or_none(a, 2));
  std::unordered_set<std::string> seen;
  ValueList kept;
  Cursor cursor(a[0], budget);
  Value item;
  while (cursor.next(item)) {
    const Value key =
        folded(path.get(item, Value::none(), budget), a.has(1) && a[1].truthy(), budget);
    std::string hashed = hash_key(key, budget);
    budget.allocate(hashed.size() + 2 * sizeof(Value));
    if (seen.insert(std::move(hashed)).second) kept.push_back(item);
  }
  return generator(std::move(kept));
}

Value extreme(Runtime& runtime, const Arguments& a, std::string_view op) {
  Budget& budget = runtime.budget;
  const AttributePath path(given_or_none(a, 2));
  Cursor cursor(a[0], budget);
  std::optional<Value> best;
  Value best_key;
  Value item;
  while (cursor.next(item)) {
    Value key = folded(path.get(item, Value::none(), budget), a.has(1) && a[1].truthy(), budget);
    if (best) {
      const int order = compare(key, best_key, op, budget).value_or(0);
      if (op == "<" ? order >= 0 : order <= 0) continue;
    }
    best = item;
    best_key = std::move(key);
  }
  if (best) return *best;
  return Value::undefined("No aggregated item, sequence was empty.");
}

Value minimum(Runtime& runtime, const Arguments& a) {
  return extreme(runtime, a, "<");
}
Value maximum(Runtime& runtime, const Arguments& a) {
  return extreme(runtime, a, ">");
}

Value sum(Runtime& runtime, const Arguments& a) {
  const AttributePath path(given_or_none(a, 1));
  Value total = a.has(2) ? a[2] : Value::integer(0);
  if (total.is_text()) fail("sum() can't sum strings", "use |join");
  Cursor cursor(a[0], runtime.budget);
  Value item;
  while (cursor.next(item)) {
    total =
        apply(BinaryOp::Add, total, path.get(item, Value::none(), runtime.budget), runtime.budget);
  }
  return total;
}

Value batch(Runtime& runtime, const Arguments& a) {
  const int64_t count = a.integer(1, 0, "batch: linecount");
  if (count < 1) fail(fmt::format("batch: linecount is {}, expected at least 1", count));
  ValueList rows;
  ValueList row;
  Cursor cursor(a[0], runtime.budget);
  Value item;
  while (cursor.next(item)) {
    runtime.budget.allocate(2 * sizeof(Value));
    if (static_cast<int64_t>(row.size()) == count) {
      rows.push_back(Value::list(std::move(row)));
      row.clear();
    }
    row.push_back(std::move(item));
  }
  if (!row.empty()) {
    const Value fill = given_or_none(a, 2);
    while (!fill.is_none() && static_cast<int64_t>(row.size()) < count) {
      runtime.budget.allocate(sizeof(Value));
      row.push_back(fill);
    }
    rows.push_back(Value::list(std::move(row)));
  }
  return generator(std::move(rows));
}

Value attr(Runtime& runtime, const Arguments& a) {
  if (a[0].is_dict() || a[0].is_undefined()) {  // unlike object.name, it never looks at keys
    if (a[0].is_undefined()) a[0].fail_undefined();
    const Value empty = DictBuilder(runtime.budget).take();
    const Value found = attribute_of(empty, a.text(1, "attr"), runtime.budget);
    if (found.is_undefined()) return found;
  }
  return attribute_of(a[0], a.text(1, "attr"), runtime.budget);
}

Value map(Runtime& runtime, const Arguments& a) {
  Budget& budget = runtime.budget;
  CallArguments call = a.rest;
  if (!a[0].truthy()) return generator({});
  Cursor cursor(a[0], budget);
  ValueList results;
  Value item;
  if (call.positional.empty()) {
    const Value* attribute = call.find("attribute");
    if (attribute == nullptr) fail("map requires a filter argument");
    for (const auto& [name, value] : call.named) {
      if (name != "attribute" && name != "default") {
        fail(fmt::format("map: unexpected keyword argument '{}'", name));
      }
    }
    const AttributePath path(*attribute);
    const Value* fallback = call.find("default");
    while (cursor.next(item)) {
      budget.allocate(sizeof(Value));
      results.push_back(path.get(std::move(item), fallback ? *fallback : Value::none(), budget));
    }
    return generator(std::move(results));
  }
  const std::string name = to_text(call.positional.front(), budget);
  const Builtin* filter = find_filter(name);
  if (filter == nullptr) fail(fmt::format("unknown filter '{}'", name));
  call.positional.erase(call.positional.begin());
  while (cursor.next(item)) {
    budget.allocate(sizeof(Value));
    results.push_back(run_builtin(runtime, *filter, item, call));
  }
  return generator(std::move(results));
}

// select, reject and their attr forms.
Value chosen(Runtime& runtime, const Arguments& a, bool by_attribute, bool wanted) {
  Budget& budget = runtime.budget;
  if (!a[0].truthy()) return generator({});
  CallArguments call = a.rest;
  const auto take_first = [&call] {
    Value value = std::move(call.positional.front());
    call.positional.erase(call.positional.begin());
    return value;
  };
  if (by_attribute && call.positional.empty()) fail("Missing parameter for attribute name");
  const AttributePath path(by_attribute ? take_first() : Value::none());
  const Builtin* test = nullptr;
  if (!call.positional.empty()) {
    const std::string name = to_text(take_first(), budget);
    test = find_test(name);
    if (test == nullptr) fail(fmt::format("unknown test '{}'", name));
  }
  ValueList kept;
  Cursor cursor(a[0], budget);
  Value item;
  while (cursor.next(item)) {
    budget.allocate(sizeof(Value));
    const Value looked_at = path.get(item, Value::none(), budget);
    const Value result = test != nullptr ? run_builtin(runtime, *test, looked_at, call) : looked_at;
    if (result.truthy() == wanted) kept.push_back(item);
  }
  return generator(std::move(kept));
}

Value select(Runtime& r, const Arguments& a) {
  return chosen(r, a, false, true);
}
Value reject(Runtime& r, const Arguments& a) {
  return chosen(r, a, false, false);
}
Value select_attr(Runtime& r, const Arguments& a) {
  return chosen(r, a, true, true);
}
Value reject_attr(Runtime& r, const Arguments& a) {
  return chosen(r, a, true, false);
}

constexpr std::array kFilters = {
    Builtin{"length", "obj", length},
    Builtin{"count", "obj", length},
    Builtin{"first", "seq", first},
    Builtin{"last", "seq", last},
    Builtin{"join", "value d? attribute?", join},
    Builtin{"list", "value", list},
    Builtin{"reverse", "value", reverse},
    Builtin{"sort", "value reverse? case_sensitive? attribute?", sort},
    Builtin{"groupby", "value attribute default? case_sensitive?", group_by},
    Builtin{"dictsort", "value case_sensitive? by? reverse?", dict_sort},
    Builtin{"items", "value", items},
    Builtin{"unique", "value case_sensitive? attribute?", unique},
    Builtin{"min", "value case_sensitive? attribute?", minimum},
    Builtin{"max", "value case_sensitive? attribute?", maximum},
    Builtin{"sum", "iterable attribute? start?", sum},
    Builtin{"batch", "value linecount fill_with?", batch},
    Builtin{"attr", "obj name", attr},
    Builtin{"map", "value * **", map},
    Builtin{"select", "value * **", select},
    Builtin{"reject", "value * **", reject},
    Builtin{"selectattr", "value * **", select_attr},
    Builtin{"rejectattr", "value * **", reject_attr},
};

}  // namespace

BuiltinTable list_filters() {
  return kFilters;
}

}  // namespace octet::jinja
