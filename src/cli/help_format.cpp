#include "cli/help_format.h"

#include <algorithm>
#include <cctype>

#include "cli/flags_lookup.h"
#include "cli/flags_value.h"

namespace octet {
namespace {

// Longer lists of choices go into the sentence.
constexpr size_t kLongestChoices = 64;

// Bounds above this only guard against nonsense; they would be noise in --help.
constexpr double kLargestShownBound = 65536;

// Names of up to this many letters are written with one dash, as in -tp.
constexpr size_t kLongestShortName = 3;

std::string kind_word(FlagKind kind) {
  switch (kind) {
    case FlagKind::Switch:
      return {};
    case FlagKind::Text:
      return "TEXT";
    case FlagKind::Path:
      return "PATH";
    case FlagKind::Integer:
      return "N";
    case FlagKind::Unsigned:
      return "N";
    case FlagKind::Size:
      return "N";
    case FlagKind::Number:
      return "X";
    case FlagKind::TextList:
      return "A,B,...";
    case FlagKind::IntegerList:
      return "N,N,...";
    case FlagKind::Repeated:
      return "TEXT";
  }
  return {};
}

bool shows_choices(const Flag& flag) {
  return flag.metavar.empty() && !flag.choices.empty() && !is_numeric(flag.kind) &&
         fmt::format("{}", fmt::join(flag.choices, "|")).size() <= kLongestChoices;
}

// The remarks in brackets after the sentence of a flag.
std::vector<std::string> remarks(const Flag& flag) {
  std::vector<std::string> notes;
  const bool telling = flag.max && *flag.max <= kLargestShownBound;
  if (flag.min && telling) notes.push_back(fmt::format("{} to {}", *flag.min, *flag.max));
  if (!flag.choices.empty() && !shows_choices(flag)) {
    const std::string words = fmt::format("{}", fmt::join(flag.choices, ", "));
    notes.push_back(is_numeric(flag.kind) ? fmt::format("or {}", words)
                                          : fmt::format("one of: {}", words));
  }
  if (flag.kind == FlagKind::Repeated) notes.emplace_back("may be repeated");
  if (flag.implicit && !flag.implicit->empty()) {
    notes.push_back(fmt::format("{} without a value", *flag.implicit));
  }
  const std::string_view shown = flag.default_text.empty() ? flag.default_value : flag.default_text;
  if (!shown.empty()) notes.push_back(fmt::format("default: {}", shown));
  return notes;
}

// Columns of `text`: bytes that do not continue a UTF-8 character.
size_t columns(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

const std::vector<ExitNote>& standard_exits() {
  static const std::vector<ExitNote> exits{
      {0, "done"},
      {exit_status(Code::CheckFailed), "a check found something"},
      {exit_status(Code::BadInput), "bad arguments, checkpoint or other input"},
      {exit_status(Code::CannotRun), "nothing here can run it, or it does not fit"},
      {exit_status(Code::Environment),
       "the environment failed: disk full, out of memory, permission, lost device, numbers that "
       "are "
       "not finite"},
      {exit_status(Code::Bug), "a bug of octet"},
      {exit_status(Code::Interrupted), "interrupted by the user"}};
  return exits;
}

const std::vector<ExitNote>& exits_of(const CommandSpec& spec) {
  return spec.exits.empty() ? standard_exits() : spec.exits;
}

std::string positional_word(const Positional& positional) {
  std::string word(positional.name);
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return word;
}

std::string usage_line(const ProgramSpec& program, const CommandSpec& spec) {
  std::string line = fmt::format("{} {} [FLAGS]", program.name, spec.name);
  for (const Positional& one : spec.positionals) {
    const std::string name = fmt::format("{}{}", positional_word(one), one.repeated ? " ..." : "");
    line += one.required ? fmt::format(" {}", name) : fmt::format(" [{}]", name);
  }
  return line;
}

std::string value_word(const Flag& flag) {
  if (!flag.metavar.empty()) return std::string(flag.metavar);
  if (shows_choices(flag)) return fmt::format("{}", fmt::join(flag.choices, "|"));
  return kind_word(flag.kind);
}

std::vector<std::string> short_spellings(const Flag& flag) {
  std::vector<std::string> spellings;
  if (flag.letter != 0) spellings.push_back(fmt::format("-{}", flag.letter));
  for (std::string_view alias : flag.aliases) {
    if (alias.size() <= kLongestShortName) spellings.push_back(fmt::format("-{}", alias));
  }
  return spellings;
}

std::string long_spelling(const Flag& flag) {
  if (flag.kind == FlagKind::Switch) {
    const bool both = flag.default_value == "on" && !negated(flag).empty();
    return fmt::format("--{}{}", both ? "[no-]" : "", flag.name);
  }
  if (flag.implicit) return fmt::format("--{}[={}]", flag.name, value_word(flag));
  return fmt::format("--{} {}", flag.name, value_word(flag));
}

std::string flag_sentence(const Flag& flag) {
  const std::vector<std::string> notes = remarks(flag);
  if (notes.empty()) return std::string(flag.help);
  return fmt::format("{} ({})", flag.help, fmt::join(notes, "; "));
}

std::string positional_sentence(const Positional& positional) {
  if (positional.choices.empty()) return std::string(positional.help);
  return fmt::format("{} (one of: {})", positional.help, fmt::join(positional.choices, ", "));
}

std::vector<FlagGroup> flag_groups(const CommandSpec& spec) {
  std::vector<FlagGroup> groups;
  for (const Flag* flag : all_flags(spec)) {
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const FlagGroup& group) { return group.first == flag->group; });
    if (found == groups.end()) found = groups.insert(found, {flag->group, {}});
    found->second.push_back(flag);
  }
  return groups;
}

std::string_view size_note(const CommandSpec& spec) {
  const bool any = std::any_of(spec.flags.begin(), spec.flags.end(),
                               [](const Flag& flag) { return flag.kind == FlagKind::Size; });
  return any ? "Counts take suffixes: k m g t are powers of 1000, K M G T of 1024 (8k is 8000, 8K "
               "is 8192)."
             : "";
}

std::string wrap(std::string_view text, size_t width, size_t indent) {
  std::string out;
  const std::string margin(indent, ' ');
  while (true) {
    const size_t feed = text.find('\n');
    std::string_view line = text.substr(0, feed);
    std::string current;
    while (true) {
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      if (line.empty()) break;
      const std::string_view word = line.substr(0, line.find(' '));
      line.remove_prefix(word.size());
      if (!current.empty() && indent + columns(current) + 1 + columns(word) > width) {
        out += margin + current + "\n";
        current.clear();
      }
      if (!current.empty()) current += ' ';
      current += word;
    }
    out += (current.empty() ? "" : margin) + current + "\n";
    if (feed == std::string_view::npos) return out;
    text.remove_prefix(feed + 1);
  }
}

}  // namespace octet
