// octet probe: what this machine offers; as JSON it is a device profile.
#include <fmt/format.h>

#include "base/plural.h"
#include "base/printable.h"
#include "cli/command_list.h"
#include "device/info.h"
#include "plan/explain.h"

namespace octet {
namespace {

const CommandSpec kSpec{
    .name = "probe",
    .summary = "Print what this machine's devices can do",
    .description =
        "The JSON form is a device profile: octet plan --device FILE plans for it anywhere.",
    .flags = {{.name = "json", .help = "print a device profile"}},
    .examples = {{"octet probe --json > here.json", "keep this machine as a profile"}},
};

int run(const ParsedArgs& args, const Console& console) {
  const DeviceInfo cpu = probe_cpu();
  if (args.on("json")) {
    console.out(to_json(cpu) + "\n");
    return 0;
  }
  console.out(fmt::format("cpu     \"{}\"\n        {}, {} usable memory\n        {}\n",
                          printable_name(cpu.name), counted(cpu.threads, "thread"),
                          human_bytes(cpu.memory_bytes), to_string(cpu.features)));
  console.out("opencl  no kernels in this program\ncuda    no kernels in this program\n");
  return 0;
}

}  // namespace

const Command kProbeCommand{&kSpec, run};

}  // namespace octet
