// octet inspect: what is wrong in the files of a checkpoint.
#include <fmt/format.h>

#include "cli/command_list.h"
#include "cli/interrupt.h"
#include "cli/model_argument.h"
#include "cli/plan_flags.h"
#include "cli/progress.h"
#include "device/info.h"
#include "evaluate/inspect.h"

namespace octet {
namespace {

const CommandSpec kSpec{
    .name = "inspect",
    .summary =
        "Look for faults in the files of a checkpoint: scales, codes, shapes, patterns, tokens",
    .description =
        "Reads headers, scales and every weight once and goes on after a fault. Names missing, "
        "zero, negative, NaN, subnormal and probably inverse scales, shapes that do not fit the "
        "strategy, targets and ignore entries that match nothing, unused tensors, absent shards, "
        "weights that are not finite or use little of their range, and templates and configs whose "
        "tokens the tokenizer does not have. Errors and warnings are findings: the exit status is "
        "then 1. Notes are none.",
    .positionals = {{.name = "model", .help = kModelHelp, .path = true}},
    .flags = {{.name = "json", .help = "print one JSON object, every finding by itself"},
              threads_flag(),
              revision_flag()},
    .examples = {{"octet inspect ./model", "before the first run of a download"},
                 {"octet inspect ./model --json", "for a pipeline that publishes checkpoints"}},
};

int run(const ParsedArgs& args, const Console& console) {
  const InterruptScope interrupt(InterruptScope::Signals::AnyEnd);
  const std::string path = model_path(args);
  const auto threads = args.integer("threads").value_or(probe_cpu().threads);
  ThreadPool pool(static_cast<int>(threads));
  Inspection result;
  {
    std::optional<ProgressBar> bar;
    result = inspect(path, pool, [&](uint64_t done, uint64_t total) {
      InterruptScope::check("not every tensor was read");
      if (!bar) bar.emplace("inspecting", static_cast<int64_t>(total));
      bar->set(static_cast<int64_t>(done));
    });
  }
  console.out(args.on("json") ? to_json(result) + "\n" : explain(result));
  return result.clean() ? 0 : exit_status(Code::CheckFailed);
}

}  // namespace

const Command kInspectCommand{&kSpec, run};

}  // namespace octet
