// octet quantize: a bf16 checkpoint to FP8.
#include <fmt/format.h>

#include <filesystem>

#include "base/atomic_folder.h"
#include "base/plural.h"
#include "base/printable.h"
#include "cli/command_list.h"
#include "cli/interrupt.h"
#include "cli/model_argument.h"
#include "cli/plan_flags.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/text_file.h"
#include "plan/explain.h"
#include "quantize/calibrate.h"
#include "quantize/quantizer.h"

namespace octet {
namespace {

const CommandSpec kSpec{
    .name = "quantize",
    .summary = "Make an FP8 checkpoint (compressed-tensors) of a bf16, f16 or f32 one",
    .description =
        "Codes and scales are those of llm-compressor, to the bit. The output folder appears whole "
        "or not at all. It must be new or empty, lie in a folder that is there, and not lie inside "
        "the checkpoint that is read.",
    .positionals = {{.name = "in",
                     .help = "checkpoint to read: a folder, or ORG/NAME[@REVISION] of the local "
                             "Hugging Face cache",
                     .path = true},
                    {.name = "out", .help = "folder to make", .path = true}},
    .flags = {{.name = "scheme",
               .kind = FlagKind::Text,
               .help = "fp8-dynamic: scale per row, inputs per token; fp8-block: 128x128 and "
                       "groups of 128; fp8-static: per "
                       "tensor, inputs calibrated; fp8-weight-only: scale per row",
               .default_value = "fp8-dynamic",
               .choices = {"fp8-dynamic", "fp8-block", "fp8-static", "fp8-weight-only"}},
              {.name = "calibration",
               .kind = FlagKind::Path,
               .metavar = "FILE",
               .help = "text file for fp8-static, UTF-8"},
              {.name = "calibration-window",
               .kind = FlagKind::Size,
               .metavar = "TOKENS",
               .help = "tokens read as one sequence while calibrating",
               .default_value = "512",
               .min = 1,
               .max = 1 << 20},
              threads_flag(),
              revision_flag()},
    .examples = {{"octet quantize ./model ./model-FP8 --scheme fp8-block", "block scales"},
                 {"octet quantize ./model ./model-FP8 --scheme fp8-static --calibration text.txt",
                  "static input scales"}},
};

// Throws BadInput when the output would mix with the files that are read, and what AtomicFolder
// says of it; done first, since calibrating takes long.
void check_output(const std::string& in, const std::string& out) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(folder_of(in), error);
  // "x/" has an empty last component, which would hide that it is x.
  const fs::path target = fs::weakly_canonical(fs::path(out) / ".", error).lexically_normal();
  const fs::path inside = target.lexically_relative(folder / "");
  if (error || inside.empty() || *inside.begin() == "..") {
    const AtomicFolder possible(out, Existing::Refuse);
    return;
  }
  throw_error(Code::BadInput,
              fmt::format("output folder {} {} the checkpoint {} that is read", out,
                          inside == "." ? "is" : "lies inside", in),
              "name a folder beside it");
}

// Ends the command after Ctrl-C, SIGTERM or SIGHUP; what was written so far goes away on the way
// out.
void stop_if_interrupted() {
  InterruptScope::check("no output was made");
}

// Largest inputs of the unquantised model on the calibration text, computed in float32.
std::vector<float> calibrated_amax(const ParsedArgs& args, const std::string& model,
                                   const DeviceInfo& info) {
  const auto file = args.text("calibration");
  if (!file) {
    throw_error(Code::BadInput, "--scheme fp8-static needs a text to calibrate on",
                "add --calibration FILE");
  }
  const std::vector<int32_t> tokens =
      encode_file(tokenizer_of(model), read_flag_file(*file, "--calibration"), *file, 1);
  PlanOptions options;
  options.policy.carrier = Carrier::F32;
  options.max_model_len = *args.integer("calibration-window");
  const auto device = make_cpu_device(info, info.threads);
  Engine engine(prepare(model, false, info, std::move(options)), *device);
  ProgressBar bar("calibrating", static_cast<int64_t>(tokens.size()), {"tokens"});
  return calibrate(engine, tokens, *args.integer("calibration-window"), [&](int64_t done) {
    stop_if_interrupted();
    bar.set(done);
  });
}

int run(const ParsedArgs& args, const Console& console) {
  const InterruptScope interrupt(InterruptScope::Signals::AnyEnd);
  const std::string in = model_path(args, "in");
  DeviceInfo info = probe_cpu();
  if (const auto threads = args.integer("threads")) info.threads = static_cast<int>(*threads);
  QuantizeJob job;
  job.form = &find_form(args.text("scheme").value_or("fp8-dynamic"));
  if (args.has("calibration") && !job.form->calibrated()) {
    throw_error(Code::BadInput,
                fmt::format("--calibration has no use with --scheme {}", job.form->name),
                "only fp8-static calibrates");
  }
  const Checkpoint input = Checkpoint::open(in);
  check_output(in, *args.argument("out"));
  job.input = &input;
  job.output = *args.argument("out");
  if (job.form->calibrated()) job.input_amax = calibrated_amax(args, in, info);
  ThreadPool pool(info.threads);
  ProgressBar bar("quantising", static_cast<int64_t>(input.file_bytes()));
  const QuantizeSummary done = quantize(job, pool, [&](QuantizeProgress p) {
    stop_if_interrupted();
    bar.set(static_cast<int64_t>(p.bytes_done));
  });
  bar.finish();
  console.out(fmt::format(
      "{}: {} in {}, {} as stored; {} from {}\n", printable_line(job.output.string()),
      counted(done.quantised, "linear layer"), job.form->name, counted(done.copied, "tensor"),
      human_bytes(done.bytes_out), human_bytes(done.bytes_in)));
  return 0;
}

}  // namespace

const Command kQuantizeCommand{&kSpec, run};

}  // namespace octet
