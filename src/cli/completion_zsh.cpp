#include "cli/completion.h"
#include "cli/flags_lookup.h"
#include "cli/help_format.h"

namespace octet {
namespace {

// Text inside single quotes of a spec of _arguments, where [ ] : and \ have a meaning.
std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\')
      out += std::string("\\") + c;
    else
      out += c;
  }
  return out;
}

// ":WORD:action", what completes a value.
std::string value_spec(const Flag& flag) {
  std::string action = " ";  // a blank action: say the word, complete nothing
  if (!flag.choices.empty())
    action = fmt::format("({})", fmt::join(flag.choices, " "));
  else if (flag.kind == FlagKind::Path)
    action = "_files";
  return fmt::format("{}{}:{}", flag.implicit ? "::" : ":", escape(value_word(flag)), action);
}

bool may_repeat(const Flag& flag) {
  return flag.kind == FlagKind::Repeated || flag.kind == FlagKind::TextList ||
         flag.kind == FlagKind::IntegerList;
}

// One line of _arguments per spelling; "(...)" names the other spellings, which it rules out.
std::string flag_specs(const Flag& flag) {
  std::vector<std::string> spellings = short_spellings(flag);
  std::string all = fmt::format("--{}", flag.name);
  const bool both = flag.default_value == "on" && !negated(flag).empty();
  if (both) all += fmt::format(" --{}", negated(flag));
  for (const std::string& one : spellings) all += " " + one;
  spellings.push_back(fmt::format("--{}", flag.name));
  if (both) spellings.push_back(fmt::format("--{}", negated(flag)));
  const std::string lead = may_repeat(flag) ? "*" : fmt::format("({})", all);
  std::string text;
  for (const std::string& one : spellings) {
    // -n+ takes -nV and -n V; --name= takes --name=V and --name V; =- takes --name=V only.
    const bool letter = one.size() == 2;
    const bool value = flag.kind != FlagKind::Switch && !(letter && flag.implicit);
    const std::string_view joint = !value ? "" : letter ? "+" : flag.implicit ? "=-" : "=";
    text += fmt::format(" \\\n        '{}{}{}[{}]{}'", lead, one, joint, escape(flag.help),
                        value ? value_spec(flag) : "");
  }
  return text;
}

std::string positional_spec(const Positional& one, size_t index) {
  std::string action = " ";
  if (!one.choices.empty())
    action = fmt::format("({})", fmt::join(one.choices, " "));
  else if (one.path)
    action = "_files";
  const std::string place = one.repeated ? "*" : fmt::format("{}", index + 1);
  return fmt::format(" \\\n        '{}{}{}:{}'", place,
                     one.required ? ":" : "::", escape(positional_word(one)), action);
}

}  // namespace

std::string zsh_completion(const ProgramSpec& program) {
  std::string names;
  std::string cases;
  for (const CommandSpec* command : program.commands) {
    names += fmt::format("    '{}:{}'\n", command->name, escape(command->summary));
    cases += fmt::format("      {}) _arguments -s", command->name);
    for (const Flag* flag : all_flags(*command)) cases += flag_specs(*flag);
    for (size_t i = 0; i < command->positionals.size(); ++i) {
      cases += positional_spec(command->positionals[i], i);
    }
    cases += " ;;\n";
  }
  return fmt::format(R"(#compdef {0}
# zsh completion for {0}; load it with: source <({0} completion zsh)
_{0}() {{
  local curcontext="$curcontext" state line
  local -a commands
  commands=(
{1}  )
  _arguments -C '(- *)--help[Show the commands]' '(- *)--version[Print the version]' \
    '1: :->command' '*:: :->arguments'
  case $state in
    command) _describe -t commands '{0} command' commands ;;
    arguments) case $line[1] in
{2}    esac ;;
  esac
}}

if [[ $funcstack[1] == _{0} ]]; then
  _{0} "$@"
else
  compdef _{0} {0}
fi
)",
                     program.name, names, cases);
}

}  // namespace octet
