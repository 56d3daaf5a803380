// octet completion and octet man: texts made from the flag table.
#include "cli/command_list.h"
#include "cli/completion.h"
#include "cli/help.h"
#include "cli/man.h"
#include "plan/format_table.h"

namespace octet {
namespace {

const CommandSpec kCompletion{
    .name = "completion",
    .summary = "Print a completion script for a shell",
    .positionals = {{.name = "shell", .help = "the shell", .choices = {"bash", "zsh", "fish"}}},
    .examples = {{"octet completion bash > ~/.local/share/bash-completion/completions/octet",
                  "complete in new shells"}},
};

const CommandSpec kMan{
    .name = "man",
    .summary = "Print the manual page of the program or of a command, or all as Markdown",
    .positionals = {{.name = "command", .help = "the command", .required = false}},
    .flags = {{.name = "markdown", .help = "print every command as Markdown instead"},
              {.name = "formats", .help = "print the table of docs/FORMATS.md instead"}},
    .examples = {{"octet man run | man -l -", "read the page of run"}},
};

int complete(const ParsedArgs& args, const Console& console) {
  console.out(completion_script(program(), *args.argument("shell")));
  return 0;
}

int man(const ParsedArgs& args, const Console& console) {
  if (args.on("markdown")) {
    console.out(cli_markdown(program()));
    return 0;
  }
  if (args.on("formats")) {
    console.out(format_table_markdown());
    return 0;
  }
  const auto command = args.argument("command");
  console.out(command ? man_page(program(), find_command(program(), *command))
                      : man_page(program()));
  return 0;
}

}  // namespace

const Command kCompletionCommand{&kCompletion, complete};
const Command kManCommand{&kMan, man};

}  // namespace octet
