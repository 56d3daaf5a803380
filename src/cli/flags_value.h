#pragma once
// Values of flags: what a row of the table accepts and how its text is read. All throw
// Error{BadInput} that names the flag and quotes the text.
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags.h"

namespace octet {

// "--max-model-len".
std::string dashed_name(const Flag& flag);

// True for Integer, Unsigned, Size and Number.
bool is_numeric(FlagKind kind);

// True when `value` is one of the row's choices.
bool is_word(const Flag& flag, std::string_view value);

// The text of an Integer or Size as a number; bounds are not checked.
int64_t whole_value(const Flag& flag, std::string_view value);

// The text of an Integer, Unsigned, Size or Number as a number; bounds are not checked.
double number_value(const Flag& flag, std::string_view value);

// The parts between single separator characters; n separators give n + 1 parts.
std::vector<std::string> split(std::string_view text, std::string_view separators);

// "1,2, 3" as integers within the row's bounds; an empty text is an empty list.
std::vector<int64_t> integers_of(const Flag& flag, std::string_view text);

// Returns when the row accepts `value`: its syntax, bounds and choices.
void check_value(const Flag& flag, std::string_view value);

}  // namespace octet
