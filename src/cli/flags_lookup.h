#pragma once
// Finding rows of the flag table by what people type; used by parsing and by help.
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags.h"

namespace octet {

// "max_model_len" as "max-model-len".
std::string with_dashes(std::string_view name);

// The long name that turns a switch off; empty for other kinds and for a switch named no-...
std::string negated(const Flag& flag);

// All long names by which a row may be called, canonical one first; negated forms not included.
std::vector<std::string_view> long_names(const Flag& flag);

// A long name of the table and what it stands for.
struct NameMatch {
  const Flag* flag;
  bool negative;     // the match is its --no- form
  std::string name;  // the full long name, without dashes
};

// Rows called exactly `name` or, if there is none, rows with a name that begins with it; one
// match per row and sign. `name` has no dashes in front; _ counts as -.
std::vector<NameMatch> find_names(const CommandSpec& spec, std::string_view name);

// True when `word`, dashes included, is exactly a flag of the table: "--json", "-n", "-tp".
bool is_flag_word(const CommandSpec& spec, std::string_view word);

// "did you mean --max-model-len? " or empty.
std::string did_you_mean(const CommandSpec& spec, std::string_view name);

// "'octet run --help' lists the flags".
std::string help_hint(const CommandSpec& spec);

}  // namespace octet
