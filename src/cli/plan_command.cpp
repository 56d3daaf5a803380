// octet plan: which kernels would run a model, why, and how many bytes, before a weight is read.
#include <fmt/format.h>

#include <chrono>

#include "base/error.h"
#include "base/mapped_file.h"
#include "cli/command_list.h"
#include "cli/device_flag.h"
#include "cli/model_argument.h"
#include "cli/plan_flags.h"
#include "model/prepare.h"
#include "plan/explain.h"
#include "plan/plan_diff.h"

namespace octet {
namespace {

const CommandSpec kSpec{
    .name = "plan",
    .summary =
        "Print which arithmetic and kernel run each layer, what was refused and why, and the bytes",
    .description =
        "Reads the headers of a checkpoint and no weight. A plan that cannot run is printed all "
        "the same, with "
        "exit status 3.\n\n"
        "With --diff the two words are files that --json wrote, and what changed between them is "
        "printed: kernels and schemes of layers, kernels of operations, bytes, notes.",
    .positionals = {{.name = "model", .help = kModelHelp, .path = true},
                    {.name = "other",
                     .help = "with --diff: the second plan",
                     .required = false,
                     .path = true}},
    .flags =
        concat({plan_flags(),
                {{.name = "json", .help = "print the plan, or the changes, as one JSON object"},
                 {.name = "diff", .help = "print what changed between two plans of --json"},
                 {.name = "headers-only", .help = "admit shards that end after their header"},
                 {.name = "timing", .help = "print how long planning took, to the standard error"},
                 revision_flag()}}),
    .examples = {{"octet plan ./Qwen3-32B-FP8 -tp 2 --max-model-len 6000",
                  "shapes and bytes of each of two ranks"},
                 {"octet plan ./model --device profiles/b580.json",
                  "plan for a device that is elsewhere"},
                 {"octet plan --diff before.json after.json", "what an update changes"}},
};

constexpr uint64_t kMaxPlanBytes = 64 << 20;

int run_diff(const ParsedArgs& args, const Console& console) {
  for (const Flag* flag : all_flags(args.spec())) {
    if (flag->name == "diff" || flag->name == "json" || !args.has(flag->name)) continue;
    throw_error(
        Code::BadInput,
        fmt::format("--{}: --diff reads two plans and takes no other flag than --json", flag->name),
        "octet plan --diff BEFORE.json AFTER.json");
  }
  const std::string before = *args.argument("model");
  const auto after = args.argument("other");
  if (!after) {
    throw_error(Code::BadInput, "--diff: expected two files, got one",
                "octet plan --diff BEFORE.json AFTER.json");
  }
  const std::string first = read_text_file(before, kMaxPlanBytes);
  const std::string second = read_text_file(*after, kMaxPlanBytes);
  const PlanText a{before, first}, b{*after, second};
  console.out(args.on("json") ? plan_diff_json(a, b) + "\n" : plan_diff(a, b));
  return 0;
}

int run(const ParsedArgs& args, const Console& console) {
  if (args.on("diff")) return run_diff(args, console);
  if (const auto other = args.argument("other")) {
    throw_error(Code::BadInput,
                fmt::format("octet plan takes one model, and then got \"{}\"", *other),
                "--diff compares two plans");
  }
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
