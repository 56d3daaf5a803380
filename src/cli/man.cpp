#include "cli/man.h"

#include <algorithm>
#include <cctype>

#include "cli/help_format.h"

namespace octet {
namespace {

// Plain text as roff shows it unchanged (groff_man(7), "Portability"): - would become a hyphen and
// ' a closing quote; a line that begins with . or ' would be a request.
std::string roff(std::string_view text) {
  std::string out;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    line_start = c == '\n';
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      case '"':
        out += "\\(dq";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

// Words stay whole and lines ragged: names of flags and files are copied from the page.
std::string title(const ProgramSpec& program, std::string_view page, std::string_view summary) {
  return fmt::format(".TH {} 1 \"\" \"{} {}\" \"{} manual\"\n.nh\n.ad l\n.SH NAME\n{} \\- {}\n",
                     upper(page), program.name, program.version, program.name, roff(page),
                     roff(summary));
}

// A tagged paragraph: the tag in bold, the text indented below it.
std::string tagged(std::string_view tag, std::string_view text) {
  return fmt::format(".TP\n.B \"{}\"\n{}\n", roff(tag), roff(text));
}

// Paragraphs are separated by empty lines in the table, by .PP in roff.
std::string paragraphs(std::string_view text) {
  std::string out;
  while (true) {
    const size_t gap = text.find("\n\n");
    out += roff(text.substr(0, gap)) + "\n";
    if (gap == std::string_view::npos) return out;
    out += ".PP\n";
    text.remove_prefix(gap + 2);
  }
}

std::string exit_section(const std::vector<ExitNote>& exits) {
  std::string text = ".SH EXIT STATUS\n";
  for (const ExitNote& note : exits) text += tagged(fmt::format("{}", note.status), note.meaning);
  return text;
}

std::string example_section(const std::vector<Example>& examples) {
  if (examples.empty()) return {};
  std::string text = ".SH EXAMPLES\n";
  for (const Example& example : examples) {
    text += fmt::format(".PP\n{}:\n.PP\n.RS 4\n.EX\n{}\n.EE\n.RE\n", roff(example.meaning),
                        roff(example.command));
  }
  return text;
}

std::string flag_tag(const Flag& flag) {
  std::string tag;
  for (const std::string& one : short_spellings(flag)) tag += one + ", ";
  return tag + long_spelling(flag);
}

std::string flag_section(const CommandSpec& spec) {
  std::string text = ".SH OPTIONS\n";
  for (const auto& [name, flags] : flag_groups(spec)) {
    text += fmt::format(".SS \"{}\"\n", roff(name));
    for (const Flag* flag : flags) text += tagged(flag_tag(*flag), flag_sentence(*flag));
  }
  if (const auto note = size_note(spec); !note.empty()) text += ".PP\n" + roff(note) + "\n";
  return text;
}

}  // namespace

std::string man_page(const ProgramSpec& program) {
  std::string text = title(program, program.name, program.summary);
  text += fmt::format(
      ".SH SYNOPSIS\n.B {0}\n.I COMMAND\n[\\fIFLAGS\\fR] [\\fIARGUMENTS\\fR]\n"
      ".SH COMMANDS\n",
      program.name);
  for (const CommandSpec* command : program.commands) {
    text += tagged(command->name,
                   fmt::format("{}; see {}-{}(1).", command->summary, program.name, command->name));
  }
  return text + example_section(program.examples) + exit_section(standard_exits());
}

std::string man_page(const ProgramSpec& program, const CommandSpec& spec) {
  std::string text = title(program, fmt::format("{}-{}", program.name, spec.name), spec.summary);
  text += fmt::format(
      ".SH SYNOPSIS\n{}\n.SH DESCRIPTION\n{}", roff(usage_line(program, spec)),
      spec.description.empty() ? roff(spec.summary) + ".\n" : paragraphs(spec.description));
  if (!spec.positionals.empty()) text += ".SH ARGUMENTS\n";
  for (const Positional& one : spec.positionals) {
    text += tagged(positional_word(one), positional_sentence(one));
  }
  text += flag_section(spec) + example_section(spec.examples) + exit_section(exits_of(spec));
  return text + fmt::format(".SH SEE ALSO\n.BR {} (1)\n", program.name);
}

}  // namespace octet
