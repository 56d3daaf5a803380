#pragma once
// Manual pages (roff, man macros) made from the flag table; `octet man [COMMAND]` prints one.
#include <string>

#include "cli/flags.h"

namespace octet {

// octet(1): the program and its commands.
std::string man_page(const ProgramSpec& program);

// octet-COMMAND(1): one command with its flags.
std::string man_page(const ProgramSpec& program, const CommandSpec& spec);

}  // namespace octet
