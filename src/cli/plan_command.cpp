// octet plan: which kernels would run a model, why, and how many bytes, before a weight is read.
#include <fmt/format.h>

#include <chrono>

#include "cli/command_list.h"
#include "cli/device_flag.h"
#include "cli/model_argument.h"
#include "cli/plan_flags.h"
#include "model/prepare.h"
#include "plan/explain.h"

namespace octet {
namespace {

const CommandSpec kSpec{
    .name = "plan",
    .summary =
        "Print which arithmetic and kernel run each layer, what was refused and why, and the bytes",
    .description =
        "Reads the headers of a checkpoint and no weight. A plan that cannot run is printed all "
        "the same, with "
        "exit status 3.",
    .positionals = {{.name = "model", .help = kModelHelp, .path = true}},
    .flags =
        concat({plan_flags(),
                {{.name = "json", .help = "print the plan as one JSON object"},
                 {.name = "headers-only", .help = "admit shards that end after their header"},
                 {.name = "timing", .help = "print how long planning took, to the standard error"},
                 revision_flag()}}),
    .examples = {{"octet plan ./Qwen3-32B-FP8 -tp 2 --max-model-len 6000",
                  "shapes and bytes of each of two ranks"},
                 {"octet plan ./model --device b580.json", "plan for a device that is elsewhere"}},
};

int run(const ParsedArgs& args, const Console& console) {
  const auto start = std::chrono::steady_clock::now();
  const DeviceInfo device = device_of(args, false);
  const Prepared prepared =
      prepare(model_path(args), args.on("headers-only"), device, plan_options(args));
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  console.out(args.on("json") ? to_json(prepared.plan) + "\n" : explain(prepared.plan));
  if (args.on("timing")) console.err(fmt::format("planned in {:.2f} ms\n", elapsed.count()));
  for (const std::string& failure : prepared.plan.failures) console.say(failure);
  return prepared.plan.failures.empty() ? 0 : exit_status(Code::CannotRun);
}

}  // namespace

const Command kPlanCommand{&kSpec, run};

}  // namespace octet
