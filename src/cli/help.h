#pragma once
// The texts of --help and docs/CLI.md, made from the flag table.
#include <string>
#include <string_view>

#include "cli/flags.h"

namespace octet {

// `octet --help`: all commands, examples, exit statuses. At most 100 columns wide.
std::string overview(const ProgramSpec& program);

// `octet COMMAND --help`: usage, arguments, flags by group with their defaults, examples, exit
// statuses. With a `word` (--help=WORD) only the flags whose group, name or sentence contains it;
// throws Error{BadInput} when none does.
std::string help_text(const ProgramSpec& program, const CommandSpec& spec,
                      std::string_view word = {});

// docs/CLI.md: every command and flag as Markdown.
std::string cli_markdown(const ProgramSpec& program);

}  // namespace octet
