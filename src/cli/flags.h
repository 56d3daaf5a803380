#pragma once
// The flag table: one description of every command, from which parsing, --help, shell completion,
// man pages and docs/CLI.md are made. Tables are plain data; parse() reads words by them and never
// prints.
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octet {

// What a flag takes.
enum class FlagKind {
  Switch,       // nothing; --name turns it on, --no-name off
  Text,         // any text
  Path,         // a file or folder; shells complete it
  Integer,      // a whole number
  Unsigned,     // a whole number of the whole range of uint64_t; bounds are not looked at
  Size,         // a whole number with an optional suffix, see parse_size
  Number,       // a finite decimal number
  TextList,     // texts separated by commas; more occurrences append
  IntegerList,  // whole numbers separated by commas; more occurrences append
  Repeated,     // one text per occurrence, commas are kept
};

// One row of the table. Views must outlive the table (literals, as a rule).
struct Flag {
  std::string_view name;                       // long name without dashes: "max-model-len"
  char letter = 0;                             // short name: 'p' for -p; 0 for none
  std::vector<std::string_view> aliases = {};  // other long names; "tp" is what makes -tp work
  FlagKind kind = FlagKind::Switch;
  std::string_view metavar = {};                  // "TOKENS"; empty: a word for the kind
  std::string_view help = {};                     // one sentence, without a full stop
  std::string_view default_value = {};            // read by the getters; empty: none
  std::string_view default_text = {};             // shown instead: "from the checkpoint"
  std::optional<std::string_view> implicit = {};  // value of a bare --name (then --name=V)
  std::vector<std::string_view> choices = {};     // the only texts; extra words of numbers
  std::optional<double> min = {};                 // smallest number accepted
  std::optional<double> max = {};                 // largest number accepted
  std::string_view group = "Options";             // heading in --help
};

// A word without dashes. Only the last one of a command may be repeated.
struct Positional {
  std::string_view name;       // "model"; shown in capitals
  std::string_view help = {};  // one sentence, without a full stop
  bool required = true;
  bool repeated = false;       // takes all remaining words
  bool path = false;           // shells complete files
  std::string_view flag = {};  // a flag that may give it instead: "model" for --model
  std::vector<std::string_view> choices = {};  // the only words taken
};

struct Example {
  std::string_view command;  // "octet run ./model -p Hello"
  std::string_view meaning;  // what it does, one sentence without a full stop
};

// A row of the EXIT STATUS section.
struct ExitNote {
  int status;
  std::string_view meaning;
};

// One command of the program.
struct CommandSpec {
  std::string_view name;              // "run"
  std::string_view summary;           // one line, without a full stop
  std::string_view description = {};  // paragraphs separated by an empty line
  std::vector<Positional> positionals = {};
  std::vector<Flag> flags = {};  // --help is added to every command
  std::vector<Example> examples = {};
  std::vector<ExitNote> exits = {};  // empty: standard_exits() of help_format.h
};

// The whole program, as help, completion and man pages show it.
struct ProgramSpec {
  std::string_view name;     // "octet"
  std::string_view version;  // "0.1.0"
  std::string_view summary;  // one line, without a full stop
  std::vector<const CommandSpec*> commands = {};
  std::vector<Example> examples = {};
};

// The command called `name`. Throws Error{BadInput} with the nearest one for any other word.
const CommandSpec& find_command(const ProgramSpec& program, std::string_view name);

// Joins shared parts of tables: concat({plan_flags(), sampling_flags(), {{.name = "json"}}}).
std::vector<Flag> concat(std::initializer_list<std::vector<Flag>> parts);

// The flag -h, --help[=WORD] that every command has.
const Flag& help_flag();

// The flags of `spec` and then --help.
std::vector<const Flag*> all_flags(const CommandSpec& spec);

// What is wrong with a table: names used twice, a default that does not parse, a missing help
// sentence. Empty for a sound one; tests call it for every command.
std::vector<std::string> spec_problems(const CommandSpec& spec);

// The words of one command line, read by a table. Getters take the long name of a flag, return the
// last value given, else the table's default, else nothing; a name or kind that the table does not
// have is a bug. Holds a pointer to the table.
class ParsedArgs {
 public:
  explicit ParsedArgs(const CommandSpec& spec) : spec_(&spec) {}

  // True when the user gave the flag.
  bool has(std::string_view name) const;
  // A Switch; off without a default.
  bool on(std::string_view name) const;
  // The value as written: Text and Path, and any other kind that takes one value.
  std::optional<std::string> text(std::string_view name) const;
  // An Integer or a Size; nothing also for one of its words ("auto": see text).
  std::optional<int64_t> integer(std::string_view name) const;
  // An Unsigned; nothing also for one of its words.
  std::optional<uint64_t> unsigned_integer(std::string_view name) const;
  // A Number, Integer, Unsigned or Size.
  std::optional<double> number(std::string_view name) const;
  // A TextList or Repeated, in the order given.
  std::vector<std::string> list(std::string_view name) const;
  // An IntegerList, in the order given.
  std::vector<int64_t> integers(std::string_view name) const;

  // A positional by its name; nothing when it was not given.
  std::optional<std::string> argument(std::string_view name) const;
  // All words of a repeated positional.
  std::vector<std::string> arguments(std::string_view name) const;

  // Set when --help was given: "" or the word of --help=WORD. Nothing else is checked then.
  const std::optional<std::string>& help() const { return help_; }
  const CommandSpec& spec() const { return *spec_; }

 private:
  friend class ArgsBuilder;
  const Flag& flag(std::string_view name) const;
  std::vector<std::string> values(const Flag& flag) const;

  const CommandSpec* spec_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::map<std::string, std::vector<std::string>, std::less<>> arguments_;
  std::optional<std::string> help_;
};

// Reads the words after the command's name. Takes --name V, --name=V, -p V, -pV, -p=V, -tp V,
// unambiguous prefixes (--gpu-memory-util=0.9), _ for - in names, --no-name for switches; -- ends
// the flags. A flag that needs a value takes the next word even if it begins with a dash, unless
// that word is itself a flag of the table. Throws Error{BadInput}.
ParsedArgs parse(const CommandSpec& spec, std::span<const std::string> words);

// Whole number with an optional suffix: k m g t count in 1000s, K M G T (also Ki, KiB) in 1024s;
// "1.5k" is 1500, a fraction before a binary suffix is refused, as vLLM reads its numbers.
// `subject` begins the message of the Error{BadInput}, which says `range` ("from 1 to 9") of a
// number that int64_t does not hold; without one, the range of int64_t.
int64_t parse_size(std::string_view text, std::string_view subject, std::string_view range = {});
// Whole number in decimal digits with an optional sign. Throws Error{BadInput} in the same way.
int64_t parse_integer(std::string_view text, std::string_view subject, std::string_view range = {});
// Whole number in decimal digits, all that a uint64_t holds. Throws Error{BadInput}.
uint64_t parse_unsigned(std::string_view text, std::string_view subject);
// Finite decimal number. Throws Error{BadInput}.
double parse_number(std::string_view text, std::string_view subject);

// The candidate that a misspelt word most likely meant; nothing when none is near.
std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> candidates);

}  // namespace octet
