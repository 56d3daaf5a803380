#include "cli/flags_value.h"

#include <algorithm>
#include <limits>

namespace octet {
namespace {

// "from 0 to 1", "of at least 1", "of at most 5"; empty without bounds.
std::string range_text(const Flag& flag) {
  if (flag.min && flag.max) return fmt::format("from {} to {}", *flag.min, *flag.max);
  if (flag.min) return fmt::format("of at least {}", *flag.min);
  if (flag.max) return fmt::format("of at most {}", *flag.max);
  return {};
}

// The same for a whole number that int64_t does not hold, where one bound would not say enough.
std::string whole_range_text(const Flag& flag) {
  if (flag.min && flag.max) return range_text(flag);
  using Limits = std::numeric_limits<int64_t>;
  if (flag.min) return fmt::format("from {} to {}", *flag.min, Limits::max());
  if (flag.max) return fmt::format("from {} to {}", Limits::min(), *flag.max);
  return {};
}

void check_range(const Flag& flag, double value, std::string_view text) {
  if ((!flag.min || value >= *flag.min) && (!flag.max || value <= *flag.max)) return;
  throw_error(Code::BadInput, fmt::format("{} takes a number {}, got '{}'", dashed_name(flag),
                                          range_text(flag), text));
}

void check_choice(const Flag& flag, std::string_view value) {
  if (flag.choices.empty() || is_word(flag, value)) return;
  const auto found = nearest(value, flag.choices);
  throw_error(Code::BadInput,
              fmt::format("{} takes one of {}, got '{}'", dashed_name(flag),
                          fmt::join(flag.choices, ", "), value),
              found ? fmt::format("did you mean {}?", *found) : std::string());
}

}  // namespace

std::string dashed_name(const Flag& flag) {
  return fmt::format("--{}", flag.name);
}

bool is_numeric(FlagKind kind) {
  return kind == FlagKind::Integer || kind == FlagKind::Unsigned || kind == FlagKind::Size ||
         kind == FlagKind::Number;
}

bool is_word(const Flag& flag, std::string_view value) {
  return std::find(flag.choices.begin(), flag.choices.end(), value) != flag.choices.end();
}

int64_t whole_value(const Flag& flag, std::string_view value) {
  const std::string range = whole_range_text(flag);
  return flag.kind == FlagKind::Size ? parse_size(value, dashed_name(flag), range)
                                     : parse_integer(value, dashed_name(flag), range);
}

double number_value(const Flag& flag, std::string_view value) {
  switch (flag.kind) {
    case FlagKind::Number:
      return parse_number(value, dashed_name(flag));
    case FlagKind::Unsigned:
      return static_cast<double>(parse_unsigned(value, dashed_name(flag)));
    default:
      return static_cast<double>(whole_value(flag, value));
  }
}

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  size_t start = 0;
  while (start <= text.size()) {
    const size_t end = std::min(text.find_first_of(separators, start), text.size());
    parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::vector<int64_t> integers_of(const Flag& flag, std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n";
  std::vector<int64_t> numbers;
  if (text.find_first_not_of(kBlanks) == std::string_view::npos) return numbers;
  for (const std::string& part : split(text, ",")) {
    const size_t begin = part.find_first_not_of(kBlanks);
    const std::string item = begin == std::string::npos
                                 ? std::string()
                                 : part.substr(begin, part.find_last_not_of(kBlanks) + 1 - begin);
    if (item.empty() || item.find_first_of(kBlanks) != std::string::npos) {
      throw_error(Code::BadInput, fmt::format("{} takes numbers between commas, got '{}'",
                                              dashed_name(flag), text));
    }
    numbers.push_back(
        parse_integer(item, fmt::format("{}, item {},", dashed_name(flag), numbers.size() + 1),
                      whole_range_text(flag)));
    check_range(flag, static_cast<double>(numbers.back()), item);
  }
  return numbers;
}

void check_value(const Flag& flag, std::string_view value) {
  switch (flag.kind) {
    case FlagKind::Switch:
    case FlagKind::Path:
    case FlagKind::Repeated:
      return;
    case FlagKind::Text:
      return check_choice(flag, value);
    case FlagKind::Integer:
    case FlagKind::Unsigned:
    case FlagKind::Size:
    case FlagKind::Number:
      if (!is_word(flag, value)) check_range(flag, number_value(flag, value), value);
      return;
    case FlagKind::IntegerList:
      static_cast<void>(integers_of(flag, value));
      return;
    case FlagKind::TextList:
      for (const std::string& item : split(value, ",")) {
        if (item.empty()) {
          throw_error(Code::BadInput, fmt::format("{} takes texts between commas, got '{}'",
                                                  dashed_name(flag), value));
        }
        check_choice(flag, item);
      }
      return;
  }
}

}  // namespace octet
