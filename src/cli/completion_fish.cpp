#include "cli/completion.h"
#include "cli/flags_lookup.h"
#include "cli/help_format.h"

namespace octet {
namespace {

// Text inside single quotes of fish.
std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// -r: needs a value; -x: needs one that is no file; an optional value has neither.
std::string value_options(const Flag& flag) {
  if (flag.kind == FlagKind::Switch) return {};
  std::string options;
  if (!flag.implicit) options = flag.kind == FlagKind::Path ? " -r -F" : " -x";
  if (!flag.choices.empty()) options += fmt::format(" -a '{}'", fmt::join(flag.choices, " "));
  return options;
}

std::string flag_lines(std::string_view start, const Flag& flag) {
  std::string names;
  for (const std::string& one : short_spellings(flag)) {
    names += fmt::format(" {} {}", one.size() == 2 ? "-s" : "-o", one.substr(1));
  }
  std::string text = fmt::format("{}{} -l {}{} -d '{}'\n", start, names, flag.name,
                                 value_options(flag), escape(flag.help));
  if (flag.default_value == "on" && !negated(flag).empty()) {
    text += fmt::format("{} -l {} -d 'Not: {}'\n", start, negated(flag), escape(flag.help));
  }
  return text;
}

}  // namespace

std::string fish_completion(const ProgramSpec& program) {
  std::string text = fmt::format(
      "# fish completion for {0}; load it with: {0} completion fish | source\n"
      "complete -c {0} -f\n"
      "complete -c {0} -n __fish_use_subcommand -l help -d 'Show the commands'\n"
      "complete -c {0} -n __fish_use_subcommand -l version -d 'Print the version'\n",
      program.name);
  for (const CommandSpec* command : program.commands) {
    text += fmt::format("complete -c {} -n __fish_use_subcommand -a {} -d '{}'\n", program.name,
                        command->name, escape(command->summary));
    const std::string start = fmt::format("complete -c {} -n '__fish_seen_subcommand_from {}'",
                                          program.name, command->name);
    for (const Flag* flag : all_flags(*command)) text += flag_lines(start, *flag);
    for (const Positional& one : command->positionals) {
      if (!one.choices.empty()) {
        text += fmt::format("{} -a '{}'\n", start, fmt::join(one.choices, " "));
      } else if (one.path) {
        text += start + " -F\n";
      }
    }
  }
  return text;
}

}  // namespace octet
