#pragma once
// The table of commands: what main() runs.
#include <span>

#include "cli/console.h"
#include "cli/flags.h"

namespace octet {

struct Command {
  const CommandSpec* spec;
  // Returns the exit status; throws Error for everything else.
  int (*run)(const ParsedArgs& args, const Console& console);
};

// Every command of the program, in the order of `octet --help`.
std::span<const Command> commands();
// The same for help, completion and man pages.
const ProgramSpec& program();

// Runs `octet WORDS...`: finds the command, prints help, reports errors. Returns the exit status;
// throws nothing.
int run_program(std::span<const std::string> words, const Console& console);

}  // namespace octet
