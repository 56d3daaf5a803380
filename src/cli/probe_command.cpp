// octet probe: what this machine offers; as JSON it is a device profile.
#include <fmt/format.h>

#include "base/error.h"
#include "base/plural.h"
#include "base/printable.h"
#include "cli/command_list.h"
#include "cli/device_flag.h"
#include "cli/program_cache.h"
#include "device/opencl.h"
#include "plan/explain.h"

namespace octet {
namespace {

const CommandSpec kSpec{
    .name = "probe",
    .summary = "Print what this machine's devices can do",
    .description =
        "The JSON form is a device profile: octet plan --device FILE plans for it anywhere.",
    .flags = {device_flag("Options"), {.name = "json", .help = "print a device profile"}},
    .examples = {{"octet probe --json > here.json", "keep this machine as a profile"},
                 {"octet probe --device opencl:0 --json > gpu.json", "the same of a GPU"}},
};

std::string describe(std::string_view word, const DeviceInfo& info) {
  std::string text = fmt::format("{:<10}\"{}\"\n", word, printable_name(info.name));
  text += fmt::format("          {}{} usable memory",
                      info.kind == DeviceKind::Cpu ? counted(info.threads, "thread") + ", " : "",
                      human_bytes(info.memory_bytes));
  if (info.max_allocation_bytes != 0)
    text += fmt::format(", {} at once", human_bytes(info.max_allocation_bytes));
  if (!info.driver.empty()) text += fmt::format(", driver {}", printable_name(info.driver));
  return text + fmt::format("\n          {}\n", to_string(info.features));
}

// Every OpenCL device, or why there is none to use.
std::string describe_opencl_devices() {
  std::string text;
  for (const OpenClEntry& entry : list_opencl_devices()) {
    const std::string word = fmt::format("opencl:{}", entry.index);
    try {
      text += describe(word, probe_opencl(entry.index, program_cache()));
    } catch (const Error& error) {
      text += fmt::format("{:<10}\"{}\"\n          cannot be used: {}\n", word, entry.name,
                          error.message());
    }
  }
  if (!text.empty()) return text;
  const std::string problem = opencl_loader_problem();
  return fmt::format("opencl    no device found: {}\n",
                     problem.empty() ? "no driver is installed, or none that works" : problem);
}

int run(const ParsedArgs& args, const Console& console) {
  if (args.on("json")) {
    console.out(to_json(device_named(args.text("device").value_or("cpu"), true)) + "\n");
    return 0;
  }
  if (args.has("device")) {
    const std::string word = *args.text("device");
    console.out(describe(word, device_named(word, true)));
    return 0;
  }
  console.out(describe("cpu", probe_cpu()) + describe_opencl_devices() +
              "cuda      no kernels in this program\n");
  return 0;
}

}  // namespace

const Command kProbeCommand{&kSpec, run};

}  // namespace octet
