#include "cli/commands.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <new>

#include "cli/command_list.h"
#include "cli/help.h"

namespace octet {
namespace {

int report(const Error& error, const Console& console) {
  console.say(error.message(), error.hint());
  return exit_status(error.code());
}

int dispatch(std::span<const std::string> words, const Console& console) {
  const std::string& first = words.front();
  if (first == "help" && words.size() > 1) {
    console.out(help_text(program(), find_command(program(), words[1]), {}));
    return 0;
  }
  if (first == "--help" || first == "-h" || first == "help") {
    console.out(overview(program()));
    return 0;
  }
  if (first == "--version" || first == "version") {
    console.out(fmt::format("octet {}\n", program().version));
    return 0;
  }
  const CommandSpec& spec = find_command(program(), first);
  const ParsedArgs args = parse(spec, words.subspan(1));
  if (args.help()) {
    console.out(help_text(program(), spec, *args.help()));
    return 0;
  }
  for (const Command& command : commands()) {
    if (command.spec == &spec) return command.run(args, console);
  }
  throw_error(Code::Bug, fmt::format("command {} has no row", spec.name));
}

}  // namespace

std::span<const Command> commands() {
  static const std::array kCommands{
      kPlanCommand,    kRunCommand,   kChatCommand,       kPerplexityCommand, kInspectCommand,
      kVerifyCommand,  kKlCommand,    kReportCommand,     kQuantizeCommand,   kImportCommand,
      kKernelsCommand, kProbeCommand, kCompletionCommand, kManCommand};
  return kCommands;
}

const ProgramSpec& program() {
  static const ProgramSpec kProgram = [] {
    ProgramSpec spec{"octet", OCTET_VERSION,
                     "FP8 language models, planned, explained and run as they lie on disk"};
    for (const Command& command : commands()) spec.commands.push_back(command.spec);
    spec.examples = {
        {"octet plan ./model", "what would run, which kernels, how many bytes, and why"},
        {"octet run ./model --chat -p 'What is the capital of France?'", "one answer"},
        {"octet chat ./model", "a conversation"}};
    return spec;
  }();
  return kProgram;
}

int run_program(std::span<const std::string> words, const Console& console) {
  try {
    if (words.empty()) {
      console.err(overview(program()));
      return exit_status(Code::BadInput);
    }
    return dispatch(words, console);
  } catch (const Error& error) {
    return report(error, console);
  } catch (const std::bad_alloc&) {
    return report({Code::Environment, "the machine has no memory left for this",
                   "try a smaller --max-model-len"},
                  console);
  } catch (const std::filesystem::filesystem_error& error) {
    return report(
        {Code::Environment,
         fmt::format("cannot read {}: {}", error.path1().string(), error.code().message()),
         "check the file, the links that lead to it and its permissions"},
        console);
  } catch (const std::exception& error) {
    return report(
        {Code::Bug, error.what(), "this is a bug of octet; please report it with the command used"},
        console);
  }
}

}  // namespace octet
