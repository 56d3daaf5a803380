#pragma once
// How rows of the flag table are spelt for people; shared by --help, man pages, markdown and shell
// completion, so that they cannot disagree.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/flags.h"

namespace octet {

// Exit statuses of every command that has no list of its own.
const std::vector<ExitNote>& standard_exits();
const std::vector<ExitNote>& exits_of(const CommandSpec& spec);

// "MODEL" for the positional "model".
std::string positional_word(const Positional& positional);

// "octet run [FLAGS] MODEL [MORE ...]".
std::string usage_line(const ProgramSpec& program, const CommandSpec& spec);

// What stands for the value: "TOKENS", "auto|float32"; empty for a switch.
std::string value_word(const Flag& flag);

// "-n", "-tp": the spellings with one dash.
std::vector<std::string> short_spellings(const Flag& flag);

// "--max-tokens N", "--[no-]enable-prefix-caching", "--logprobs[=K]".
std::string long_spelling(const Flag& flag);

// The help sentence with choices and default: "Tokens to make (default: 128)".
std::string flag_sentence(const Flag& flag);

// The sentence of a positional, with its choices.
std::string positional_sentence(const Positional& positional);

// Headings in the order of the table, each with its rows; --help is last.
using FlagGroup = std::pair<std::string_view, std::vector<const Flag*>>;
std::vector<FlagGroup> flag_groups(const CommandSpec& spec);

// Explains 8k and 8K when a flag of the command is a Size; else empty.
std::string_view size_note(const CommandSpec& spec);

// `text` in lines of at most `width` columns, each begun by `indent` spaces; empty lines stay and
// words longer than a line are not broken. Ends with a line feed.
std::string wrap(std::string_view text, size_t width, size_t indent);

}  // namespace octet
