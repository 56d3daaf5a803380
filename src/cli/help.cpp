#include "cli/help.h"

#include <algorithm>
#include <cctype>

#include "cli/help_format.h"

namespace octet {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kSentenceColumn = 36;  // where the sentences of flags and arguments begin

// "  left        sentence", the sentence wrapped in its own column.
std::string row(const std::string& left, std::string_view sentence, size_t column) {
  std::string text = "  " + left;
  std::string body = wrap(sentence, kWidth, column);
  if (text.size() + 2 > column) return text + "\n" + body;
  body.replace(0, std::min(body.size(), column), text + std::string(column - text.size(), ' '));
  return body;
}

std::string flag_row(const Flag& flag) {
  const std::vector<std::string> shorts = short_spellings(flag);
  // Long names line up behind "-x, ".
  std::string left = shorts.empty() ? "    " : fmt::format("{}, ", fmt::join(shorts, ", "));
  return row(left + long_spelling(flag), flag_sentence(flag), kSentenceColumn);
}

std::string exit_rows(const std::vector<ExitNote>& exits) {
  std::string text = "Exit status:\n";
  for (const ExitNote& note : exits)
    text += row(fmt::format("{:>3}", note.status), note.meaning, 8);
  return text;
}

std::string example_rows(const std::vector<Example>& examples) {
  if (examples.empty()) return {};
  std::string text = "\nExamples:\n";
  for (const Example& example : examples) {
    text += fmt::format("  {}\n{}", example.command, wrap(example.meaning, kWidth, 6));
  }
  return text;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// Rows about a word: those of the group called so, else all that mention it.
std::vector<const Flag*> rows_about(const CommandSpec& spec, std::string_view word) {
  const std::string wanted = lower(word.substr(std::min(word.find_first_not_of('-'), word.size())));
  std::vector<const Flag*> rows;
  for (const auto& [name, flags] : flag_groups(spec)) {
    if (lower(name) == wanted) return flags;
    for (const Flag* flag : flags) {
      const std::string text = lower(
          fmt::format("{} {} {} {}", name, flag->name, fmt::join(flag->aliases, " "), flag->help));
      const bool letter = wanted.size() == 1 && wanted[0] == flag->letter;
      if (letter || (wanted.size() > 1 && text.find(wanted) != std::string::npos)) {
        rows.push_back(flag);
      }
    }
  }
  return rows;
}

std::string help_about(const CommandSpec& spec, std::string_view word) {
  const auto rows = rows_about(spec, word);
  if (rows.empty()) {
    throw_error(Code::BadInput, fmt::format("no flag of 'octet {}' is about '{}'", spec.name, word),
                fmt::format("'octet {} --help' lists all flags", spec.name));
  }
  std::string text;
  for (const Flag* flag : rows) text += flag_row(*flag);
  return text;
}

// A cell of a Markdown table; | ends a cell even inside a code span.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

// Prose in Markdown: < would begin a tag.
std::string prose(std::string_view text) {
  std::string out;
  for (const char c : cell(text)) {
    if (c == '<')
      out += "&lt;";
    else if (c == '*' || c == '_' || c == '`')
      out += std::string("\\") + c;
    else
      out += c;
  }
  return out;
}

std::string markdown_flag(const Flag& flag) {
  std::string names;
  for (const std::string& one : short_spellings(flag)) names += fmt::format("`{}`, ", one);
  names += fmt::format("`{}`", cell(long_spelling(flag)));
  return fmt::format("| {} | {} |\n", names, prose(flag_sentence(flag)));
}

std::string markdown_command(const ProgramSpec& program, const CommandSpec& spec) {
  std::string text = fmt::format("\n## {} {}\n\n{}.\n\n```\n{}\n```\n", program.name, spec.name,
                                 prose(spec.summary), usage_line(program, spec));
  if (!spec.description.empty()) text += fmt::format("\n{}\n", spec.description);
  if (!spec.positionals.empty()) text += "\n| Argument | Meaning |\n|---|---|\n";
  for (const Positional& one : spec.positionals) {
    text += fmt::format("| `{}` | {} |\n", positional_word(one), prose(positional_sentence(one)));
  }
  for (const auto& [name, flags] : flag_groups(spec)) {
    text += fmt::format("\n| {} | Meaning |\n|---|---|\n", name);
    for (const Flag* flag : flags) text += markdown_flag(*flag);
  }
  if (const auto note = size_note(spec); !note.empty()) text += fmt::format("\n{}\n", note);
  for (const Example& example : spec.examples) {
    text += fmt::format("\n{}:\n\n```\n{}\n```\n", prose(example.meaning), example.command);
  }
  return text;
}

}  // namespace

std::string overview(const ProgramSpec& program) {
  size_t column = 0;
  for (const CommandSpec* command : program.commands) {
    column = std::max(column, command->name.size() + 4);
  }
  std::string text = fmt::format(
      "{0} {1}: {2}\n\nUsage: {0} COMMAND [FLAGS] [ARGUMENTS]\n"
      "       {0} COMMAND --help\n       {0} --version\n\nCommands:\n",
      program.name, program.version, program.summary);
  for (const CommandSpec* command : program.commands) {
    text += row(std::string(command->name), command->summary, column);
  }
  return text + example_rows(program.examples) + "\n" + exit_rows(standard_exits());
}

std::string help_text(const ProgramSpec& program, const CommandSpec& spec, std::string_view word) {
  if (!word.empty()) return help_about(spec, word);
  std::string text = fmt::format("{} {}: {}\n\nUsage: {}\n", program.name, spec.name, spec.summary,
                                 usage_line(program, spec));
  if (!spec.description.empty()) text += "\n" + wrap(spec.description, kWidth, 0);
  if (!spec.positionals.empty()) text += "\nArguments:\n";
  for (const Positional& one : spec.positionals) {
    text += row(positional_word(one), positional_sentence(one), kSentenceColumn);
  }
  for (const auto& [name, flags] : flag_groups(spec)) {
    text += fmt::format("\n{}:\n", name);
    for (const Flag* flag : flags) text += flag_row(*flag);
  }
  if (const auto note = size_note(spec); !note.empty()) text += "\n" + wrap(note, kWidth, 0);
  return text + example_rows(spec.examples) + "\n" + exit_rows(exits_of(spec));
}

std::string cli_markdown(const ProgramSpec& program) {
  std::string text = fmt::format(
      "# {0}: commands and flags\n\n{1}.\n\nThis page is made from the "
      "flag table; `{0} COMMAND --help` says the same.\n\n",
      program.name, prose(program.summary));
  text += "| Command | Meaning |\n|---|---|\n";
  for (const CommandSpec* command : program.commands) {
    text += fmt::format("| [`{0}`](#{1}-{0}) | {2} |\n", command->name, program.name,
                        prose(command->summary));
  }
  text += "\n| Exit status | Meaning |\n|---|---|\n";
  for (const ExitNote& note : standard_exits()) {
    text += fmt::format("| {} | {} |\n", note.status, prose(note.meaning));
  }
  for (const CommandSpec* command : program.commands) text += markdown_command(program, *command);
  return text;
}

}  // namespace octet
