// What makes a flag table unsound.
#include <set>

#include "cli/flags_lookup.h"
#include "cli/flags_value.h"

namespace octet {
namespace {

void check_flag(const Flag& flag, std::vector<std::string>& problems) {
  const auto bad = [&](std::string what) {
    problems.push_back(fmt::format("--{}: {}", flag.name, what));
  };
  if (flag.name.size() < 2) bad("a long name has two letters or more");
  for (std::string_view name : long_names(flag)) {
    if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos) {
      bad(fmt::format("'{}' is not lower case letters, digits and dashes", name));
    }
  }
  if (flag.help.empty()) bad("has no help");
  if (!flag.help.empty() && flag.help.back() == '.') bad("its help ends with a full stop");
  if (flag.kind == FlagKind::Switch &&
      (flag.implicit || !flag.metavar.empty() || !flag.choices.empty())) {
    bad("a switch takes no value");
  }
  if (flag.kind == FlagKind::Switch && !flag.default_value.empty() && flag.default_value != "on" &&
      flag.default_value != "off") {
    bad(fmt::format("the default of a switch is on or off, not '{}'", flag.default_value));
  }
  try {
    if (!flag.default_value.empty()) check_value(flag, flag.default_value);
    if (flag.implicit) check_value(flag, *flag.implicit);
  } catch (const Error& error) {
    bad(error.message());
  }
}

}  // namespace

std::vector<std::string> spec_problems(const CommandSpec& spec) {
  std::vector<std::string> problems;
  std::set<std::string> names;
  const auto take = [&](std::string name) {
    if (!names.insert(name).second) problems.push_back(fmt::format("{} is used twice", name));
  };
  if (spec.summary.empty()) problems.push_back("the command has no summary");
  for (const Flag* flag : all_flags(spec)) {
    check_flag(*flag, problems);
    for (std::string_view name : long_names(*flag)) {
      take(fmt::format("--{}", name));
      if (!negated(*flag).empty()) take(fmt::format("--no-{}", name));
    }
    if (flag->letter != 0) take(fmt::format("-{}", flag->letter));
  }
  for (size_t i = 0; i < spec.positionals.size(); ++i) {
    const Positional& one = spec.positionals[i];
    take(std::string(one.name));
    if (one.help.empty()) problems.push_back(fmt::format("{} has no help", one.name));
    if (one.repeated && i + 1 < spec.positionals.size()) {
      problems.push_back(fmt::format("{} is repeated but not the last", one.name));
    }
    if (!one.flag.empty() && names.count(fmt::format("--{}", one.flag)) == 0) {
      problems.push_back(fmt::format("{} names an unknown flag --{}", one.name, one.flag));
    }
  }
  return problems;
}

}  // namespace octet
