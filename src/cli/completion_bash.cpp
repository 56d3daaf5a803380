#include "cli/completion.h"
#include "cli/flags_lookup.h"
#include "cli/help_format.h"

namespace octet {
namespace {

// Fills COMPREPLY with files and folders; compopt fails outside of a real completion, as in tests.
constexpr std::string_view kFiles =
    "compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")";

std::string words_reply(std::string_view words) {
  return fmt::format("mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$cur\")", words);
}

// "--max-tokens|-n" as a case pattern.
std::string pattern(const Flag& flag) {
  std::string text = fmt::format("--{}", flag.name);
  for (std::string_view alias : flag.aliases) text += fmt::format("|--{}", alias);
  for (const std::string& one : short_spellings(flag)) text += fmt::format("|{}", one);
  return text;
}

// What completes the value of a flag.
std::string value_reply(const Flag& flag) {
  if (!flag.choices.empty()) return words_reply(fmt::format("{}", fmt::join(flag.choices, " ")));
  return std::string(flag.kind == FlagKind::Path ? kFiles : ":");
}

std::string flag_words(const CommandSpec& spec) {
  std::string words;
  for (const Flag* flag : all_flags(spec)) {
    words += fmt::format("--{} ", flag->name);
    if (flag->default_value == "on" && !negated(*flag).empty()) {
      words += fmt::format("--{} ", negated(*flag));
    }
    for (const std::string& one : short_spellings(*flag)) words += one + " ";
  }
  words.pop_back();
  return words;
}

std::string positional_reply(const CommandSpec& spec) {
  for (const Positional& one : spec.positionals) {
    if (!one.choices.empty()) return words_reply(fmt::format("{}", fmt::join(one.choices, " ")));
    if (one.path) return std::string(kFiles);
  }
  return ":";
}

std::string command_function(const ProgramSpec& program, const CommandSpec& spec) {
  std::string text = fmt::format("_{}_{}() {{\n  case $prev in\n", program.name, spec.name);
  for (const Flag* flag : all_flags(spec)) {
    if (flag->kind == FlagKind::Switch) continue;
    if (flag->implicit && flag->choices.empty()) continue;  // the next word may be anything
    text += fmt::format("    {}) {}; return ;;\n", pattern(*flag), value_reply(*flag));
  }
  text += fmt::format("  esac\n  if [[ $cur == -* ]]; then\n    {}\n    return\n  fi\n  {}\n}}\n\n",
                      words_reply(flag_words(spec)), positional_reply(spec));
  return text;
}

}  // namespace

std::string bash_completion(const ProgramSpec& program) {
  std::string names;
  std::string cases;
  std::string text = fmt::format(
      "# bash completion for {0}; load it with: source <({0} completion bash)\n", program.name);
  for (const CommandSpec* command : program.commands) {
    text += command_function(program, *command);
    names += fmt::format("{} ", command->name);
    cases += fmt::format("    {0}) _{1}_{0} ;;\n", command->name, program.name);
  }
  // bash splits --name=value into three words, because = is one of its word breaks.
  text += fmt::format(R"(_{0}() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}
  COMPREPLY=()
  if [[ $cur == "=" ]]; then
    cur=
  elif [[ $prev == "=" ]]; then
    prev=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  if (( COMP_CWORD == 1 )); then
    {1}
    return
  fi
  case ${{COMP_WORDS[1]}} in
{2}  esac
}}

complete -F _{0} {0}
)",
                      program.name, words_reply(names + "--help --version"), cases);
  return text;
}

}  // namespace octet
