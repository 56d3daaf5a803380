// Methods of strings, dicts, lists and the loop variable.
#include <algorithm>
#include <array>

#include "text/jinja_builtin.h"
#include "text/jinja_format.h"
#include "text/jinja_operator.h"
#include "text/jinja_print.h"
#include "text/jinja_text_edit.h"
#include "text/jinja_unicode.h"
#include "text/utf8.h"

namespace octet::jinja {
namespace {

// The result of a string's method is markup when the string is, and so are its arguments made.
Value like(const Value& self, std::string text) {
  return Value::text(std::move(text), self.is_safe());
}

std::string argument_text(const Arguments& a, size_t i, std::string_view method) {
  const std::string& text = a.text(i, method);
  return a[0].is_safe() && !a[i].is_safe() ? escape_html(text) : text;
}

template <std::string (*change)(std::string_view)>
Value changed(Runtime& runtime, const Arguments& a) {
  runtime.budget.scan(a[0].bytes().size());
  TextBuilder out(runtime.budget);
  out += change(a[0].bytes());
  return like(a[0], out.take());
}

template <bool (*holds)(std::string_view)>
Value whole_text(Runtime& runtime, const Arguments& a) {
  runtime.budget.scan(a[0].bytes().size());
  return Value::boolean(holds(a[0].bytes()));
}

Value strip_sides(Runtime& runtime, const Arguments& a, bool left, bool right) {
  const std::string& text = a[0].bytes();
  runtime.budget.scan(text.size());
  runtime.budget.allocate(text.size());
  std::string_view characters;
  if (a.has(1) && !a[1].is_none()) {
    characters = a.text(1, "strip");
    if (characters.empty()) return a[0];
    runtime.budget.step(text.size() / 64 * characters.size());
  }
  return like(a[0], std::string(strip(text, left, right, characters)));
}

Value strip_both(Runtime& r, const Arguments& a) {
  return strip_sides(r, a, true, true);
}
Value strip_left(Runtime& r, const Arguments& a) {
  return strip_sides(r, a, true, false);
}
Value strip_right(Runtime& r, const Arguments& a) {
  return strip_sides(r, a, false, true);
}

Value split_from(Runtime& runtime, const Arguments& a, bool from_right) {
  const int64_t limit = a.integer(2, -1, "split: maxsplit");
  if (!a.has(1) || a[1].is_none()) {
    return Value::list(split_text(a[0], nullptr, limit, from_right, runtime.budget));
  }
  const std::string separator = argument_text(a, 1, "split");
  return Value::list(split_text(a[0], &separator, limit, from_right, runtime.budget));
}

Value split(Runtime& r, const Arguments& a) {
  return split_from(r, a, false);
}
Value split_right(Runtime& r, const Arguments& a) {
  return split_from(r, a, true);
}

Value split_into_lines(Runtime& runtime, const Arguments& a) {
  const std::string& text = a[0].bytes();
  runtime.budget.scan(text.size());
  runtime.budget.allocate(text.size());
  ValueList lines;
  for_each_line(text, a.has(1) && a[1].truthy(), [&](std::string_view line) {
    runtime.budget.allocate(kObjectBytes + sizeof(Value));
    runtime.budget.step();
    lines.push_back(like(a[0], std::string(line)));
  });
  return Value::list(std::move(lines));
}

// The part of the subject that optional start and end (arguments 2 and 3) leave, and where it
// begins.
struct Window {
  std::string_view text;
  size_t start;      // bytes
  bool empty_start;  // start lies beyond the end: nothing is found, not even ""
};

Window window_of(Runtime& runtime, const Arguments& a) {
  const std::string_view text = a[0].bytes();
  runtime.budget.scan(text.size());
  if (!a.has(2) && !a.has(3)) return Window{text, 0, false};
  const int64_t length = *length_of(a[0], runtime.budget);
  const auto bound = [&](size_t i, int64_t fallback) {
    if (!a.has(i) || a[i].is_none()) return fallback;
    const int64_t index = a.integer(i, 0, "start or end");
    return index < 0 ? std::max<int64_t>(index < -length ? 0 : index + length, 0) : index;
  };
  const int64_t start = bound(2, 0);
  const int64_t end = std::min(bound(3, length), length);
  if (start > end) return Window{{}, text.size(), true};
  const size_t first = byte_offset(text, static_cast<size_t>(start));
  const size_t bytes = byte_offset(text.substr(first), static_cast<size_t>(end - start));
  return Window{text.substr(first, bytes), first, false};
}

// startswith and endswith: one string or a tuple of them.
Value has_affix(Runtime& runtime, const Arguments& a, bool at_start) {
  const Window window = window_of(runtime, a);
  const auto matches = [&](const Value& affix) {
    if (affix.is_undefined()) affix.fail_undefined();
    if (!affix.is_text()) {
      fail(fmt::format("{} first arg must be str or a tuple of str, not {}",
                       at_start ? "startswith" : "endswith", affix.type_name()));
    }
    if (window.empty_start) return false;
    return at_start ? window.text.starts_with(affix.bytes()) : window.text.ends_with(affix.bytes());
  };
  if (!a[1].is_sequence(SequenceKind::Tuple)) return Value::boolean(matches(a[1]));
  const ValueList& affixes = a[1].items().items;
  return Value::boolean(std::any_of(affixes.begin(), affixes.end(), matches));
}

Value starts_with(Runtime& r, const Arguments& a) {
  return has_affix(r, a, true);
}
Value ends_with(Runtime& r, const Arguments& a) {
  return has_affix(r, a, false);
}

// Index in code points; -1 when it is not there.
int64_t index_of(Runtime& runtime, const Arguments& a, bool from_right) {
  const std::string& needle = a.text(1, "find");
  const Window window = window_of(runtime, a);
  if (window.empty_start) return -1;
  if (from_right) runtime.budget.step(window.text.size() / 256 * needle.size());
  const size_t at = from_right ? window.text.rfind(needle) : find_text(window.text, needle);
  if (at == std::string_view::npos) return -1;
  const std::string_view before = std::string_view(a[0].bytes()).substr(0, window.start + at);
  return count_characters(before);
}

Value find(Runtime& r, const Arguments& a) {
  return Value::integer(index_of(r, a, false));
}
Value find_right(Runtime& r, const Arguments& a) {
  return Value::integer(index_of(r, a, true));
}

Value index_or_fail(Runtime& runtime, const Arguments& a, bool from_right) {
  const int64_t index = index_of(runtime, a, from_right);
  if (index < 0) fail("substring not found");
  return Value::integer(index);
}

Value index(Runtime& r, const Arguments& a) {
  return index_or_fail(r, a, false);
}
Value index_right(Runtime& r, const Arguments& a) {
  return index_or_fail(r, a, true);
}

Value count(Runtime& runtime, const Arguments& a) {
  const std::string& needle = a.text(1, "count");
  const Window window = window_of(runtime, a);
  if (window.empty_start) return Value::integer(0);
  if (needle.empty()) {  // it stands before every character and at the end
    return Value::integer(count_characters(window.text) + 1);
  }
  int64_t found = 0;
  for (size_t at = 0; (at = find_text(window.text, needle, at)) != std::string_view::npos;
       at += needle.size()) {
    runtime.budget.step();
    ++found;
  }
  return Value::integer(found);
}

Value replace(Runtime& runtime, const Arguments& a) {
  return like(a[0], replace_text(a[0].bytes(), argument_text(a, 1, "replace"),
                                 argument_text(a, 2, "replace"), a.integer(3, -1, "replace"),
                                 runtime.budget));
}

Value join(Runtime& runtime, const Arguments& a) {
  Cursor cursor(a[1], runtime.budget);
  TextBuilder out(runtime.budget);
  Value item;
  for (int64_t i = 0; cursor.next(item); ++i) {
    if (i > 0) out += a[0].bytes();
    if (item.is_undefined()) item.fail_undefined();
    if (!item.is_text()) {
      fail(fmt::format("sequence item {}: expected str instance, {} found", i, item.type_name()));
    }
    out += a[0].is_safe() && !item.is_safe() ? escape_html(item.bytes()) : item.bytes();
  }
  return like(a[0], out.take());
}

Value pad(Runtime& runtime, const Arguments& a, char align) {
  const std::string fill = a.has(2) ? argument_text(a, 2, "fill character") : " ";
  if (fill.empty() || code_point_at(fill, 0).bytes != fill.size()) {
    fail("The fill character must be exactly one character long");
  }
  return like(a[0], pad_text(a[0].bytes(), a.integer(1, 0, "width"), fill, align, runtime.budget));
}

Value center(Runtime& r, const Arguments& a) {
  return pad(r, a, '^');
}
Value adjust_left(Runtime& r, const Arguments& a) {
  return pad(r, a, '<');
}
Value adjust_right(Runtime& r, const Arguments& a) {
  return pad(r, a, '>');
}

Value zero_fill(Runtime& runtime, const Arguments& a) {
  const std::string_view text = a[0].bytes();
  const bool has_sign = text.starts_with('-') || text.starts_with('+');
  const int64_t width = a.integer(1, 0, "zfill");
  const std::string padded =
      pad_text(text.substr(has_sign ? 1 : 0), has_sign && width > 0 ? width - 1 : width, "0", '>',
               runtime.budget);
  return like(a[0], std::string(text.substr(0, has_sign ? 1 : 0)) + padded);
}

Value partition_at(Runtime& runtime, const Arguments& a, bool from_right) {
  const std::string separator = argument_text(a, 1, "partition");
  if (separator.empty()) fail("empty separator");
  const std::string& text = a[0].bytes();
  runtime.budget.scan(text.size());
  runtime.budget.allocate(text.size());
  if (from_right) runtime.budget.step(text.size() / 256 * separator.size());
  const size_t at = from_right ? text.rfind(separator) : find_text(text, separator);
  if (at == std::string::npos) {
    const Value empty = like(a[0], "");
    return from_right ? Value::tuple({empty, empty, a[0]}) : Value::tuple({a[0], empty, empty});
  }
  return Value::tuple({like(a[0], text.substr(0, at)), like(a[0], separator),
                       like(a[0], text.substr(at + separator.size()))});
}

Value partition(Runtime& r, const Arguments& a) {
  return partition_at(r, a, false);
}
Value partition_right(Runtime& r, const Arguments& a) {
  return partition_at(r, a, true);
}

Value remove_prefix(Runtime& runtime, const Arguments& a) {
  runtime.budget.allocate(a[0].bytes().size());
  const std::string& prefix = a.text(1, "removeprefix");
  if (!a[0].bytes().starts_with(prefix)) return a[0];
  return like(a[0], a[0].bytes().substr(prefix.size()));
}

Value remove_suffix(Runtime& runtime, const Arguments& a) {
  runtime.budget.allocate(a[0].bytes().size());
  const std::string& suffix = a.text(1, "removesuffix");
  if (!a[0].bytes().ends_with(suffix)) return a[0];
  return like(a[0], a[0].bytes().substr(0, a[0].bytes().size() - suffix.size()));
}

Value format(Runtime& runtime, const Arguments& a) {
  return format_braces(a[0], a.rest, runtime.budget);
}

constexpr std::array kTextMethods = {
    Builtin{"strip", "self chars?", strip_both},
    Builtin{"lstrip", "self chars?", strip_left},
    Builtin{"rstrip", "self chars?", strip_right},
    Builtin{"split", "self sep? maxsplit?", split},
    Builtin{"rsplit", "self sep? maxsplit?", split_right},
    Builtin{"splitlines", "self keepends?", split_into_lines},
    Builtin{"startswith", "self prefix start? end?", starts_with},
    Builtin{"endswith", "self suffix start? end?", ends_with},
    Builtin{"find", "self sub start? end?", find},
    Builtin{"rfind", "self sub start? end?", find_right},
    Builtin{"index", "self sub start? end?", index},
    Builtin{"rindex", "self sub start? end?", index_right},
    Builtin{"count", "self sub start? end?", count},
    Builtin{"replace", "self old new count?", replace},
    Builtin{"join", "self iterable", join},
    Builtin{"format", "self * **", format},
    Builtin{"upper", "self", changed<to_upper>},
    Builtin{"lower", "self", changed<to_lower>},
    Builtin{"title", "self", changed<title>},
    Builtin{"capitalize", "self", changed<capitalize>},
    Builtin{"swapcase", "self", changed<swap_case>},
    Builtin{"center", "self width fillchar?", center},
    Builtin{"ljust", "self width fillchar?", adjust_left},
    Builtin{"rjust", "self width fillchar?", adjust_right},
    Builtin{"zfill", "self width", zero_fill},
    Builtin{"partition", "self sep", partition},
    Builtin{"rpartition", "self sep", partition_right},
    Builtin{"removeprefix", "self prefix", remove_prefix},
    Builtin{"removesuffix", "self suffix", remove_suffix},
    Builtin{"isalpha", "self", whole_text<is_letters>},
    Builtin{"isalnum", "self", whole_text<is_letters_or_digits>},
    Builtin{"isdigit", "self", whole_text<is_digits>},
    Builtin{"isdecimal", "self", whole_text<is_decimal_digits>},
    Builtin{"isnumeric", "self", whole_text<is_numeric_text>},
    Builtin{"isspace", "self", whole_text<is_space_text>},
    Builtin{"isascii", "self", whole_text<is_ascii_text>},
    Builtin{"isupper", "self", whole_text<is_upper_text>},
    Builtin{"islower", "self", whole_text<is_lower_text>},
    Builtin{"istitle", "self", whole_text<is_title_text>},
};

Value get(Runtime& runtime, const Arguments& a) {
  const Value* value = a[0].dict().find(a[1], runtime.budget);
  if (value != nullptr) return *value;
  return a.has(2) ? a[2] : Value::none();
}

Value view(Runtime& runtime, const Arguments& a, SequenceKind kind) {
  ValueList items;
  for (const auto& [key, value] : a[0].dict().entries) {
    runtime.budget.step();
    runtime.budget.allocate(3 * sizeof(Value));
    if (kind == SequenceKind::Items) {
      items.push_back(Value::tuple({key, value}));
    } else {
      items.push_back(kind == SequenceKind::Keys ? key : value);
    }
  }
  return Value::sequence(kind, std::move(items));
}

Value items(Runtime& r, const Arguments& a) {
  return view(r, a, SequenceKind::Items);
}
Value keys(Runtime& r, const Arguments& a) {
  return view(r, a, SequenceKind::Keys);
}
Value values(Runtime& r, const Arguments& a) {
  return view(r, a, SequenceKind::Values);
}

// Nothing can change a dict or list, so a copy is the thing itself.
Value copy(Runtime&, const Arguments& a) {
  return a[0];
}

constexpr std::array kDictMethods = {
    Builtin{"get", "self key default?", get},
    Builtin{"items", "self", items},
    Builtin{"keys", "self", keys},
    Builtin{"values", "self", values},
    Builtin{"copy", "self", copy},
};

Value count_items(Runtime& runtime, const Arguments& a) {
  int64_t found = 0;
  for (const Value& item : a[0].items().items) {
    if (equal(item, a[1], runtime.budget)) ++found;
  }
  return Value::integer(found);
}

Value index_item(Runtime& runtime, const Arguments& a) {
  const ValueList& list = a[0].items().items;
  for (size_t i = 0; i < list.size(); ++i) {
    if (equal(list[i], a[1], runtime.budget)) return Value::integer(static_cast<int64_t>(i));
  }
  fail(fmt::format("{} is not in list", repr(a[1], runtime.budget)));
}

constexpr std::array kSequenceMethods = {
    Builtin{"count", "self value", count_items},
    Builtin{"index", "self value", index_item},
    Builtin{"copy", "self", copy},
};

Value cycle(Runtime&, const Arguments& a) {
  const ValueList& values = a.rest.positional;
  if (values.empty()) fail("no items for cycling given");
  const int64_t at = a[0].get<std::shared_ptr<LoopObject>>()->index0();
  return values[static_cast<size_t>(at) % values.size()];
}

Value no_changed(Runtime&, const Arguments&) {
  fail("loop.changed is not supported", "compare with loop.previtem");
}

constexpr std::array kLoopMethods = {
    Builtin{"cycle", "self *", cycle},
    Builtin{"changed", "self *", no_changed},
};

}  // namespace

BuiltinTable text_methods() {
  return kTextMethods;
}
BuiltinTable dict_methods() {
  return kDictMethods;
}
BuiltinTable sequence_methods() {
  return kSequenceMethods;
}
BuiltinTable loop_methods() {
  return kLoopMethods;
}

}  // namespace octet::jinja
