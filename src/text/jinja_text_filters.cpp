// Filters that work on one string or number.
#include <algorithm>
#include <array>
#include <cmath>

#include "text/jinja_builtin.h"
#include "text/jinja_format.h"
#include "text/jinja_literal.h"
#include "text/jinja_operator.h"
#include "text/jinja_print.h"
#include "text/jinja_text_edit.h"
#include "text/jinja_unicode.h"

namespace octet::jinja {
namespace {

constexpr int64_t kMaxWidth = int64_t{1} << 40;  // far above what the text limit lets through

// The subject as a string; markup stays markup.
struct Subject {
  std::string text;
  bool safe;
};

Subject subject_of(Runtime& runtime, const Arguments& a) {
  runtime.budget.scan(a[0].is_text() ? a[0].bytes().size() : 0);
  return Subject{to_text(a[0], runtime.budget), a[0].is_safe()};
}

Value changed(Runtime& runtime, const Arguments& a, std::string (*change)(std::string_view)) {
  const Subject subject = subject_of(runtime, a);
  return Value::text(change(subject.text), subject.safe);
}

Value upper(Runtime& runtime, const Arguments& a) {
  return changed(runtime, a, to_upper);
}
Value lower(Runtime& runtime, const Arguments& a) {
  return changed(runtime, a, to_lower);
}
Value capitalized(Runtime& runtime, const Arguments& a) {
  return changed(runtime, a, capitalize);
}

// Unlike str.title, words begin after white space, "-", "(", "{", "[" and "<" only.
std::string title_words(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const size_t first = byte_offset(text.substr(at), 1);
    const auto is_separator = [&](size_t position) {
      const std::string_view rest = text.substr(position);
      return std::string_view("-({[<").find(rest[0]) != std::string_view::npos ||
             strip(rest.substr(0, byte_offset(rest, 1)), true, false).empty();
    };
    const bool separators = is_separator(at);
    at += first;
    while (at < text.size() && is_separator(at) == separators) {
      at += byte_offset(text.substr(at), 1);
    }
    if (separators) {
      out += text.substr(start, at - start);
    } else {
      out += to_upper(text.substr(start, first)) +
             to_lower(text.substr(start + first, at - start - first));
    }
  }
  return out;
}

Value titled(Runtime& runtime, const Arguments& a) {
  return changed(runtime, a, title_words);
}

Value trim(Runtime& runtime, const Arguments& a) {
  const Subject subject = subject_of(runtime, a);
  const std::string_view characters =
      a.has(1) && !a[1].is_none() ? std::string_view(a.text(1, "trim")) : std::string_view();
  if (a.has(1) && !a[1].is_none() && characters.empty()) {
    return Value::text(subject.text, subject.safe);
  }
  runtime.budget.step(subject.text.size() * characters.size() / 64);
  return Value::text(std::string(strip(subject.text, true, true, characters)), subject.safe);
}

Value replaced(Runtime& runtime, const Arguments& a) {
  Budget& budget = runtime.budget;
  const int64_t count = a.has(3) && !a[3].is_none() ? a.integer(3, -1, "replace") : -1;
  return Value::text(replace_text(to_text(a[0], budget), to_text(a[1], budget),
                                  to_text(a[2], budget), count, budget));
}

Value indented(Runtime& runtime, const Arguments& a) {
  a.text(0, "indent");  // unlike its neighbours, it takes strings only
  const Subject subject = subject_of(runtime, a);
  TextBuilder indention(runtime.budget);
  if (a.has(1) && a[1].is_text()) {
    indention += a[1].bytes();
  } else {
    const int64_t width = a.integer(1, 4, "indent");
    indention.repeat(" ", static_cast<uint64_t>(std::clamp<int64_t>(width, 0, kMaxWidth)));
  }
  const std::string prefix = indention.take();
  const bool first = a.has(2) && a[2].truthy();
  const bool blank = a.has(3) && a[3].truthy();
  std::string whole = subject.text;
  whole += '\n';
  runtime.budget.allocate(whole.size());
  TextBuilder out(runtime.budget);
  bool is_first = true;
  for_each_line(whole, false, [&](std::string_view line) {
    if (!is_first) out += '\n';
    if (is_first ? first : (blank || !line.empty())) out += prefix;
    is_first = false;
    out += line;
  });
  return Value::text(out.take(), subject.safe);
}

// As jinja2: a text up to `leeway` too long stays whole; without `killwords` the last word that
// does not fit goes entirely.
Value truncated(Runtime& runtime, const Arguments& a) {
  Budget& budget = runtime.budget;
  const int64_t length = a.integer(1, 255, "truncate: length");
  const std::string end = a.has(3) ? a.text(3, "truncate: end") : "...";
  const int64_t leeway =
      a.has(4) && !a[4].is_none() ? a.integer(4, 0, "truncate: leeway") : int64_t{5};
  const int64_t end_length = count_characters(end);
  if (length < end_length)
    fail(fmt::format("truncate: expected length >= {}, got {}", end_length, length));
  if (leeway < 0) fail(fmt::format("truncate: expected leeway >= 0, got {}", leeway));
  const auto given = length_of(a[0], budget);
  if (!given) fail(fmt::format("object of type '{}' has no len()", a[0].type_name()));
  if (*given <= length || *given - length <= leeway) return a[0];
  if (!a[0].is_text()) fail(fmt::format("truncate: expected a str, got a {}", a[0].type_name()));
  Value kept =
      slice_of(a[0], {Value::none(), Value::integer(length - end_length), Value::none()}, budget);
  if (!(a.has(2) && a[2].truthy())) {
    const std::string& text = kept.bytes();
    const size_t space = text.rfind(' ');
    if (space != std::string::npos) kept = Value::text(text.substr(0, space), kept.is_safe());
  }
  return apply(BinaryOp::Add, kept, a.has(3) ? a[3] : Value::text(end), budget);
}

Value centered(Runtime& runtime, const Arguments& a) {
  const Subject subject = subject_of(runtime, a);
  return Value::text(pad_text(subject.text, a.integer(1, 80, "center"), " ", '^', runtime.budget),
                     subject.safe);
}

Value word_count(Runtime& runtime, const Arguments& a) {
  const Subject subject = subject_of(runtime, a);
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < subject.text.size();) {
    const std::string_view rest = std::string_view(subject.text).substr(at);
    const size_t bytes = byte_offset(rest, 1);
    const std::string_view c = rest.substr(0, bytes);
    const bool word = is_word_character(c);
    if (word && !inside) ++words;
    inside = word;
    at += bytes;
  }
  return Value::integer(words);
}

Value escape(Runtime& runtime, const Arguments& a) {
  if (a[0].is_safe()) return a[0];
  TextBuilder out(runtime.budget);
  out += escape_html(to_text(a[0], runtime.budget));
  return Value::text(out.take(), true);
}

Value force_escape(Runtime& runtime, const Arguments& a) {
  TextBuilder out(runtime.budget);
  out += escape_html(to_text(a[0], runtime.budget));
  return Value::text(out.take(), true);
}

Value safe(Runtime& runtime, const Arguments& a) {
  return Value::text(to_text(a[0], runtime.budget), true);
}

Value string(Runtime& runtime, const Arguments& a) {
  return a[0].is_text() ? a[0] : Value::text(to_text(a[0], runtime.budget));
}

Value format(Runtime& runtime, const Arguments& a) {
  const Value subject = string(runtime, a);
  if (!a.rest.named.empty() && !a.rest.positional.empty()) {
    fail("format: arguments by position and by name cannot be mixed");
  }
  if (a.rest.named.empty()) {
    return format_percent(subject, Value::tuple(a.rest.positional), runtime.budget);
  }
  DictBuilder values(runtime.budget);
  for (const auto& [name, value] : a.rest.named) values.set(name, value);
  return format_percent(subject, values.take(), runtime.budget);
}

// json.dumps with the parameters that transformers' tojson has.
Value to_json(Runtime& runtime, const Arguments& a) {
  JsonStyle style;
  style.ensure_ascii = a.has(1) && a[1].truthy();
  if (a.has(2) && !a[2].is_none()) {
    if (a[2].is_text()) {
      style.indent = a[2].bytes();
    } else {
      const int64_t width = a.integer(2, 0, "tojson: indent");
      if (width > 1000) fail(fmt::format("tojson: an indent of {} is above 1000", width));
      style.indent = std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    }
    style.item_separator.assign(1, ',');
  }
  if (a.has(3) && !a[3].is_none()) {
    const ValueList separators = collect(a[3], runtime.budget);
    if (separators.size() != 2 || !separators[0].is_text() || !separators[1].is_text()) {
      fail("tojson: separators must be two strings");
    }
    style.item_separator = separators[0].bytes();
    style.key_separator = separators[1].bytes();
  }
  style.sort_keys = a.has(4) && a[4].truthy();
  TextBuilder out(runtime.budget);
  append_json(out, a[0], style);
  return Value::text(out.take());
}

// int(float): cut towards zero; nullopt for what is no number.
std::optional<int64_t> whole(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  const double cut = std::trunc(value);
  if (cut < -9223372036854775808.0 || cut >= 9223372036854775808.0) {
    fail(fmt::format("int: {} does not fit 64 bits", value));
  }
  return static_cast<int64_t>(cut);
}

Value to_integer(Runtime& runtime, const Arguments& a) {
  if (a[0].is_undefined()) a[0].fail_undefined();
  const Value fallback = a.has(1) ? a[1] : Value::integer(0);
  if (const auto integer = a[0].as_integer()) return Value::integer(*integer);
  std::optional<int64_t> result;
  if (a[0].is_real()) {
    result = whole(a[0].get<double>());
  } else if (a[0].is_text()) {
    runtime.budget.scan(a[0].bytes().size());
    const auto base = a.has(2) ? a[2].as_integer() : 10;
    if (base) result = parse_integer(a[0].bytes(), *base);  // any other base is no number, no error
    if (!result) {
      if (const auto real = parse_real(a[0].bytes())) result = whole(*real);
    }
  }
  return result ? Value::integer(*result) : fallback;
}

Value to_real(Runtime& runtime, const Arguments& a) {
  if (a[0].is_undefined()) a[0].fail_undefined();
  if (const auto real = a[0].as_real()) return Value::real(*real);
  if (a[0].is_text()) {
    runtime.budget.scan(a[0].bytes().size());
    if (const auto real = parse_real(a[0].bytes())) return Value::real(*real);
  }
  return a.has(1) ? a[1] : Value::real(0);
}

Value absolute(Runtime&, const Arguments& a) {
  if (const auto integer = a[0].as_integer()) {
    if (*integer == INT64_MIN) fail("abs: the value does not fit a 64-bit integer");
    return Value::integer(std::abs(*integer));
  }
  if (a[0].is_real()) return Value::real(std::fabs(a[0].get<double>()));
  if (a[0].is_undefined()) a[0].fail_undefined();
  fail(fmt::format("bad operand type for abs(): '{}'", a[0].type_name()));
}

// round(): to the nearest decimal, a tie to the even digit, as the exact value of the double
// decides.
double round_decimal(double value, int64_t precision) {
  if (!std::isfinite(value) || precision > 330) return value;
  if (precision >= 0) {
    return *parse_real(fmt::format("{:.{}f}", value, static_cast<int>(precision)));
  }
  if (precision < -308) return std::copysign(0.0, value);
  const double unit = std::pow(10.0, static_cast<double>(-precision));
  return std::nearbyint(value / unit) * unit;
}

int64_t round_integer(int64_t value, int64_t precision) {
  if (precision >= 0) return value;
  if (precision < -18) return 0;
  int64_t unit = 1;
  for (int64_t i = 0; i < -precision; ++i) unit *= 10;
  int64_t rest = value % unit;
  if (rest < 0) rest += unit;
  int64_t rounded = 0;
  const bool odd = ((value - rest) / unit) % 2 != 0;
  const bool up = rest > unit - rest || (rest == unit - rest && odd);
  if (__builtin_sub_overflow(value, rest, &rounded) ||
      (up && __builtin_add_overflow(rounded, unit, &rounded))) {
    fail("round: the result does not fit a 64-bit integer");
  }
  return rounded;
}

Value rounded(Runtime&, const Arguments& a) {
  const int64_t precision = a.integer(1, 0, "round: precision");
  const std::string_view method =
      a.has(2) ? std::string_view(a.text(2, "round: method")) : "common";
  if (method != "common" && method != "ceil" && method != "floor") {
    fail(fmt::format("round: method must be common, ceil or floor, got '{}'", method));
  }
  if (a[0].is_undefined()) a[0].fail_undefined();
  const auto real = a[0].as_real();
  if (!real) fail(fmt::format("round: expected a number, got a {}", a[0].type_name()));
  if (method == "common") {
    if (const auto integer = a[0].as_integer()) {
      return Value::integer(round_integer(*integer, precision));
    }
    return Value::real(round_decimal(*real, precision));
  }
  const double unit =
      std::pow(10.0, static_cast<double>(std::clamp<int64_t>(precision, -400, 400)));
  const double scaled = *real * unit;
  return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit);
}

Value defaulted(Runtime&, const Arguments& a) {
  const bool by_truth = a.has(2) && a[2].truthy();
  if (!a[0].is_undefined() && (!by_truth || a[0].truthy())) return a[0];
  return a.has(1) ? a[1] : Value::text("");
}

constexpr std::array kFilters = {
    Builtin{"upper", "s", upper},
    Builtin{"lower", "s", lower},
    Builtin{"title", "s", titled},
    Builtin{"capitalize", "s", capitalized},
    Builtin{"trim", "value chars?", trim},
    Builtin{"replace", "s old new count?", replaced},
    Builtin{"indent", "s width? first? blank?", indented},
    Builtin{"truncate", "s length? killwords? end? leeway?", truncated},
    Builtin{"center", "value width?", centered},
    Builtin{"wordcount", "s", word_count},
    Builtin{"escape", "s", escape},
    Builtin{"e", "s", escape},
    Builtin{"forceescape", "value", force_escape},
    Builtin{"safe", "value", safe},
    Builtin{"string", "object", string},
    Builtin{"format", "value * **", format},
    Builtin{"tojson", "x ensure_ascii? indent? separators? sort_keys?", to_json},
    Builtin{"int", "value default? base?", to_integer},
    Builtin{"float", "value default?", to_real},
    Builtin{"abs", "x", absolute},
    Builtin{"round", "value precision? method?", rounded},
    Builtin{"default", "value default_value? boolean?", defaulted},
    Builtin{"d", "value default_value? boolean?", defaulted},
};

}  // namespace

BuiltinTable text_filters() {
  return kFilters;
}

}  // namespace octet::jinja
