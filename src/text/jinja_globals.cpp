// Functions that every template can call.
#include <array>

#include "text/jinja_builtin.h"
#include "text/jinja_print.h"
#include "text/jinja_strftime.h"

namespace octet::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // as Jinja's sandbox

Value range(Runtime& runtime, const Arguments& a) {
  const int64_t first = a.integer(0, 0, "range");
  const int64_t start = a.has(1) ? first : 0;
  const int64_t stop = a.has(1) ? a.integer(1, 0, "range") : first;
  const int64_t step = a.integer(2, 1, "range");
  if (step == 0) fail("range() arg 3 must not be zero");
  ValueList items;
  int64_t at = start;
  while (step > 0 ? at < stop : at > stop) {
    if (static_cast<int64_t>(items.size()) == kMaxRange) {
      fail(fmt::format("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).",
                       kMaxRange));
    }
    runtime.budget.allocate(sizeof(Value));
    items.push_back(Value::integer(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  std::string shown = step == 1 ? fmt::format("range({}, {})", start, stop)
                                : fmt::format("range({}, {}, {})", start, stop, step);
  return Value::sequence(SequenceKind::Range, std::move(items), std::move(shown));
}

// dict(mapping or pairs, **named); namespace() takes the same.
Value make_dict(Runtime& runtime, const Arguments& a) {
  DictBuilder dict(runtime.budget);
  if (a.has(0)) {
    if (a[0].is_undefined()) a[0].fail_undefined();
    if (a[0].is_dict()) {
      for (const auto& [key, value] : a[0].dict().entries) dict.set(key, value);
    } else {
      Cursor cursor(a[0], runtime.budget);
      Value pair;
      while (cursor.next(pair)) {
        const ValueList parts = collect(pair, runtime.budget);
        if (parts.size() != 2) {
          fail(fmt::format("dict(): a pair has {} items, expected 2", parts.size()));
        }
        dict.set(parts[0], parts[1]);
      }
    }
  }
  for (const auto& [name, value] : a.rest.named) dict.set(name, value);
  return dict.take();
}

Value make_namespace(Runtime& runtime, const Arguments& a) {
  const Value dict = make_dict(runtime, a);
  runtime.budget.allocate(sizeof(Namespace));
  Namespace& space = runtime.namespaces.emplace_back();
  for (const auto& [key, value] : dict.dict().entries) {
    if (!key.is_text()) fail("namespace(): the names must be strings");
    runtime.budget.step(space.attributes.size() / 16);
    runtime.budget.allocate(kObjectBytes);
    space.set(key.bytes(), value);
  }
  return Value(Value::Data(&space));
}

Value raise_exception(Runtime& runtime, const Arguments& a) {
  throw RaisedByTemplate{to_text(a[0], runtime.budget)};
}

Value strftime_now(Runtime& runtime, const Arguments& a) {
  TextBuilder out(runtime.budget);
  append_time(out, a.text(0, "strftime_now"), runtime.clock());
  return Value::text(out.take());
}

constexpr std::array kFunctions = {
    Builtin{"range", "start stop? step?", range},
    Builtin{"dict", "mapping? **", make_dict},
    Builtin{"namespace", "mapping? **", make_namespace},
    Builtin{"raise_exception", "message", raise_exception},
    Builtin{"strftime_now", "format", strftime_now},
};

}  // namespace

BuiltinTable global_functions() {
  return kFunctions;
}

}  // namespace octet::jinja
