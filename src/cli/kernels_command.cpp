// octet kernels: the catalogue.
#include "base/error.h"
#include "cli/command_list.h"
#include "plan/kernel_list.h"

namespace octet {
namespace {

const CommandSpec kSpec{
    .name = "kernels",
    .summary = "List every kernel of this program and what it takes",
    .flags = {{.name = "json", .help = "print a JSON array"},
              {.name = "markdown", .help = "print docs/KERNELS.md"}},
    .examples = {{"octet kernels --json",
                  "names, devices, schemes, instruction sets and what each takes"}},
};

int run(const ParsedArgs& args, const Console& console) {
  if (args.on("markdown") && args.on("json")) {
    throw_error(Code::BadInput, "--json and --markdown: octet kernels prints one of them",
                "leave out one");
  }
  const std::vector<KernelRow> rows = kernel_rows();
  if (args.on("markdown")) {
    console.out(kernels_markdown(rows));
  } else {
    console.out(args.on("json") ? kernels_json(rows) + "\n" : kernels_text(rows));
  }
  return 0;
}

}  // namespace

const Command kKernelsCommand{&kSpec, run};

}  // namespace octet
