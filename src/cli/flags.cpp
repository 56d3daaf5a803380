#include "cli/flags.h"

#include <algorithm>

#include "cli/flags_value.h"

namespace octet {

std::vector<Flag> concat(std::initializer_list<std::vector<Flag>> parts) {
  std::vector<Flag> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

const Flag& help_flag() {
  static const Flag flag{.name = "help",
                         .letter = 'h',
                         .kind = FlagKind::Text,
                         .metavar = "WORD",
                         .help = "show this help, or only the flags about WORD",
                         .implicit = "",
                         .group = "Help"};
  return flag;
}

std::vector<const Flag*> all_flags(const CommandSpec& spec) {
  std::vector<const Flag*> flags;
  flags.reserve(spec.flags.size() + 1);
  for (const Flag& flag : spec.flags) flags.push_back(&flag);
  flags.push_back(&help_flag());
  return flags;
}

const Flag& ParsedArgs::flag(std::string_view name) const {
  for (const Flag* one : all_flags(*spec_)) {
    if (one->name == name) return *one;
  }
  throw_error(Code::Bug, fmt::format("command '{}' has no flag '{}'", spec_->name, name));
}

std::vector<std::string> ParsedArgs::values(const Flag& flag) const {
  const auto found = values_.find(flag.name);
  if (found != values_.end()) return found->second;
  if (flag.default_value.empty()) return {};
  return {std::string(flag.default_value)};
}

bool ParsedArgs::has(std::string_view name) const {
  return values_.find(flag(name).name) != values_.end();
}

bool ParsedArgs::on(std::string_view name) const {
  const Flag& one = flag(name);
  OCTET_CHECK(one.kind == FlagKind::Switch, "--{} is not a switch", name);
  const std::vector<std::string> all = values(one);
  return !all.empty() && all.back() == "on";
}

std::optional<std::string> ParsedArgs::text(std::string_view name) const {
  const Flag& one = flag(name);
  OCTET_CHECK(one.kind == FlagKind::Text || one.kind == FlagKind::Path || is_numeric(one.kind),
              "--{} is not one text", name);
  std::vector<std::string> all = values(one);
  if (all.empty()) return std::nullopt;
  return std::move(all.back());
}

std::optional<int64_t> ParsedArgs::integer(std::string_view name) const {
  const Flag& one = flag(name);
  OCTET_CHECK(one.kind == FlagKind::Integer || one.kind == FlagKind::Size,
              "--{} is not a whole number", name);
  const auto value = text(name);
  if (!value || is_word(one, *value)) return std::nullopt;
  return whole_value(one, *value);
}

std::optional<uint64_t> ParsedArgs::unsigned_integer(std::string_view name) const {
  const Flag& one = flag(name);
  OCTET_CHECK(one.kind == FlagKind::Unsigned, "--{} is not an unsigned whole number", name);
  const auto value = text(name);
  if (!value || is_word(one, *value)) return std::nullopt;
  return parse_unsigned(*value, dashed_name(one));
}

std::optional<double> ParsedArgs::number(std::string_view name) const {
  const Flag& one = flag(name);
  OCTET_CHECK(is_numeric(one.kind), "--{} is not a number", name);
  const auto value = text(name);
  if (!value || is_word(one, *value)) return std::nullopt;
  return number_value(one, *value);
}

std::vector<std::string> ParsedArgs::list(std::string_view name) const {
  const Flag& one = flag(name);
  OCTET_CHECK(one.kind == FlagKind::TextList || one.kind == FlagKind::Repeated,
              "--{} is not a list of texts", name);
  if (one.kind == FlagKind::Repeated) return values(one);
  std::vector<std::string> items;
  for (const std::string& value : values(one)) {
    for (std::string& item : split(value, ",")) items.push_back(std::move(item));
  }
  return items;
}

std::vector<int64_t> ParsedArgs::integers(std::string_view name) const {
  const Flag& one = flag(name);
  OCTET_CHECK(one.kind == FlagKind::IntegerList, "--{} is not a list of numbers", name);
  std::vector<int64_t> numbers;
  for (const std::string& value : values(one)) {
    for (int64_t number : integers_of(one, value)) numbers.push_back(number);
  }
  return numbers;
}

std::optional<std::string> ParsedArgs::argument(std::string_view name) const {
  std::vector<std::string> all = arguments(name);
  if (all.empty()) return std::nullopt;
  return std::move(all.front());
}

std::vector<std::string> ParsedArgs::arguments(std::string_view name) const {
  const auto& all = spec_->positionals;
  OCTET_CHECK(std::any_of(all.begin(), all.end(), [&](auto& one) { return one.name == name; }),
              "command '{}' has no argument '{}'", spec_->name, name);
  const auto found = arguments_.find(name);
  return found == arguments_.end() ? std::vector<std::string>() : found->second;
}

}  // namespace octet
