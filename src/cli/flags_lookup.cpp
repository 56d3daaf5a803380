#include "cli/flags_lookup.h"

#include <algorithm>
#include <numeric>

namespace octet {
namespace {

void add_matches(const Flag& flag, std::string_view name, bool exact,
                 std::vector<NameMatch>& matches) {
  const auto hit = [&](std::string_view full) {
    return exact ? full == name : full.substr(0, name.size()) == name;
  };
  std::vector<std::string_view> names = long_names(flag);
  if (const auto it = std::find_if(names.begin(), names.end(), hit); it != names.end()) {
    matches.push_back({&flag, false, std::string(*it)});
  }
  if (negated(flag).empty()) return;
  for (std::string_view positive : names) {
    std::string negative = fmt::format("no-{}", positive);
    if (!hit(negative)) continue;
    matches.push_back({&flag, true, std::move(negative)});
    return;
  }
}

// Edits (insert, delete, replace, swap of neighbours) between two words: optimal string alignment.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    std::vector<size_t> row(b.size() + 1);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before = std::move(last);
    last = std::move(row);
  }
  return last[b.size()];
}

std::vector<std::string_view> split_dashes(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t dash = text.find('-');
    parts.push_back(text.substr(0, dash));
    if (dash == std::string_view::npos) return parts;
    text.remove_prefix(dash + 1);
  }
}

// "gpu-mem-util" shortens every part of "gpu-memory-utilization".
bool shortens(std::string_view word, std::string_view full) {
  const auto parts = split_dashes(word);
  const auto full_parts = split_dashes(full);
  if (parts.size() < 2 || parts.size() > full_parts.size()) return false;
  return std::equal(parts.begin(), parts.end(), full_parts.begin(), [](auto part, auto whole) {
    return !part.empty() && whole.substr(0, part.size()) == part;
  });
}

}  // namespace

std::string with_dashes(std::string_view name) {
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return dashed;
}

std::string negated(const Flag& flag) {
  if (flag.kind != FlagKind::Switch || flag.name.substr(0, 3) == "no-") return {};
  return fmt::format("no-{}", flag.name);
}

std::vector<std::string_view> long_names(const Flag& flag) {
  std::vector<std::string_view> names{flag.name};
  names.insert(names.end(), flag.aliases.begin(), flag.aliases.end());
  return names;
}

std::vector<NameMatch> find_names(const CommandSpec& spec, std::string_view name) {
  const std::string dashed = with_dashes(name);
  std::vector<NameMatch> matches;
  for (const bool exact : {true, false}) {
    for (const Flag* flag : all_flags(spec)) add_matches(*flag, dashed, exact, matches);
    if (!matches.empty()) break;
  }
  return matches;
}

bool is_flag_word(const CommandSpec& spec, std::string_view word) {
  if (word.size() < 2 || word[0] != '-') return false;
  if (word == "--") return true;
  if (word.size() == 2) {
    const auto flags = all_flags(spec);
    if (std::any_of(flags.begin(), flags.end(), [&](auto* f) { return f->letter == word[1]; })) {
      return true;
    }
  }
  word.remove_prefix(word[1] == '-' ? 2 : 1);
  const auto matches = find_names(spec, word);
  return matches.size() == 1 && matches[0].name == with_dashes(word);
}

std::string did_you_mean(const CommandSpec& spec, std::string_view name) {
  const std::string dashed = with_dashes(name);
  std::vector<std::string> names;
  for (const Flag* flag : all_flags(spec)) {
    for (std::string_view one : long_names(*flag)) {
      names.emplace_back(one);
      if (!negated(*flag).empty() && dashed.substr(0, 3) == "no-") {
        names.push_back(fmt::format("no-{}", one));
      }
    }
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  const auto found = nearest(dashed, views);
  return found ? fmt::format("did you mean --{}? ", *found) : std::string();
}

std::string help_hint(const CommandSpec& spec) {
  return fmt::format("'octet {} --help' lists the flags", spec.name);
}

const CommandSpec& find_command(const ProgramSpec& program, std::string_view name) {
  std::vector<std::string_view> names;
  for (const CommandSpec* command : program.commands) {
    if (command->name == name) return *command;
    names.push_back(command->name);
  }
  const auto found = nearest(name, names);
  throw_error(Code::BadInput, fmt::format("{} has no command '{}'", program.name, name),
              fmt::format("{}'{} --help' lists the commands",
                          found ? fmt::format("did you mean '{}'? ", *found) : "", program.name));
}

std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> candidates) {
  const size_t limit = std::min<size_t>(3, std::max<size_t>(1, word.size() / 3));
  std::optional<std::string_view> best;
  size_t best_distance = limit + 1;
  for (std::string_view candidate : candidates) {
    const size_t gap =
        std::max(word.size(), candidate.size()) - std::min(word.size(), candidate.size());
    if (gap > limit) continue;
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  if (best) return best;
  for (std::string_view candidate : candidates) {
    if (shortens(word, candidate)) return candidate;
  }
  return std::nullopt;
}

}  // namespace octet
