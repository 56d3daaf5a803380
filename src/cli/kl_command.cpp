// octet kl: how far the predictions of one model are from those of another.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command_list.h"
#include "cli/device_flag.h"
#include "cli/interrupt.h"
#include "cli/model_argument.h"
#include "cli/plan_flags.h"
#include "cli/planned_model.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/text_file.h"
#include "evaluate/kl.h"

namespace octet {
namespace {

constexpr std::string_view kReferenceGroup = "Plan of the reference";

std::vector<Flag> reference_flags() {
  return {{.name = "reference-prefer",
           .kind = FlagKind::Text,
           .metavar = "SCHEME",
           .help = "--prefer of the reference",
           .default_text = "what the kernels prefer",
           .choices = {"w8a8", "w8a16"},
           .group = kReferenceGroup},
          {.name = "reference-dtype",
           .kind = FlagKind::Text,
           .help = "--dtype of the reference",
           .default_value = "auto",
           .choices = {"auto", "float32", "bfloat16"},
           .group = kReferenceGroup},
          {.name = "reference-kernel",
           .kind = FlagKind::Repeated,
           .metavar = "[LAYER-REGEX=]NAME",
           .help = "--kernel of the reference",
           .group = kReferenceGroup},
          {.name = "reference-max-isa",
           .kind = FlagKind::Text,
           .help = "--max-isa of the reference",
           .default_text = "what the CPU has",
           .choices = {"baseline", "avx2", "avx512"},
           .group = kReferenceGroup}};
}

// Those of every command, with smaller steps: every row comes back with its whole vocabulary, and
// 64 rows of 150,000 are 38 MB a model.
std::vector<Flag> model_flags() {
  std::vector<Flag> flags = plan_flags();
  for (Flag& flag : flags) {
    if (flag.name == "max-num-batched-tokens") flag.default_value = "64";
  }
  return flags;
}

const CommandSpec kSpec{
    .name = "kl",
    .summary =
        "Measure how far a model's predictions are from those of a reference, on a text file",
    .description =
        "Prints mean, maximum and percentiles of KL(reference || model) per token over the whole "
        "vocabulary, in nats, how often both have the same best token, and the mean negative "
        "log-likelihood of each. The tokenizers must be the same. The text is read in consecutive "
        "windows of the smaller context.\n\n"
        "The flags of the plan are those of MODEL; --device, --threads, --quarantine, "
        "--max-model-len and "
        "--max-num-batched-tokens count for both. The reference is planned as by "
        "default, or by the --reference flags.",
    .positionals = {{.name = "reference", .help = kModelHelp, .path = true},
                    {.name = "model", .help = kModelHelp, .path = true}},
    .flags = concat({{{.name = "file",
                       .letter = 'f',
                       .kind = FlagKind::Path,
                       .metavar = "FILE",
                       .help = "the text, UTF-8"},
                      {.name = "json", .help = "print one JSON object"}},
                     reference_flags(),
                     model_flags()}),
    .examples = {{"octet kl ./model ./model-FP8 --file text.txt", "what FP8 costs"},
                 {"octet kl ./model-FP8 ./model-FP8 --file text.txt --prefer w8a16",
                  "W8A16 against W8A8"},
                 {"octet kl ./model ./model --reference-dtype float32 --max-isa avx2 -f text.txt",
                  "one instruction set against exact carriers"}},
};

PlanOptions reference_options(const ParsedArgs& args) {
  const PlanOptions shared = plan_options(args);
  PlanOptions options;
  options.policy.quarantine = shared.policy.quarantine;
  options.max_batch_tokens = shared.max_batch_tokens;
  options.max_model_len = shared.max_model_len;
  options.ranks = shared.ranks;
  options.policy.prefer = scheme_flag(args, "reference-prefer");
  options.policy.carrier = carrier_flag(args, "reference-dtype");
  for (const std::string& rule : args.list("reference-kernel"))
    options.policy.forced.push_back(parse_kernel_rule(rule));
  options.isa_limited = args.has("reference-max-isa");
  return options;
}

// One of the two models, loaded.
struct Side {
  std::unique_ptr<Device> device;
  std::unique_ptr<Engine> engine;
  Tokenizer tokenizer;
};

Side open_side(const std::string& path, const DeviceInfo& info, std::unique_ptr<Device> device,
               PlanOptions options) {
  PlannedModel model = plan_model(path, info, std::move(device), std::move(options));
  require_runnable(model.prepared.plan);
  Tokenizer tokenizer = tokenizer_of(path);
  auto engine = std::make_unique<Engine>(std::move(model.prepared), *model.device);
  return {std::move(model.device), std::move(engine), std::move(tokenizer)};
}

std::string json_text(const KlResult& r) {
  const nlohmann::ordered_json json{{"tokens", r.tokens},
                                    {"scored", r.scored},
                                    {"kl_mean", r.mean},
                                    {"kl_max", r.max},
                                    {"kl_max_token", r.max_token},
                                    {"kl_p50", r.p50},
                                    {"kl_p90", r.p90},
                                    {"kl_p99", r.p99},
                                    {"kl_p999", r.p999},
                                    {"top1_agreement", r.top1_agreement},
                                    {"reference_nll", r.reference_nll},
                                    {"nll", r.nll}};
  return json.dump(2) + "\n";
}

std::string plain_text(const KlResult& r) {
  return fmt::format(
      "tokens {}  scored {}\n"
      "KL per token, nats   mean {:.6f}  max {:.6f} (token {})\n"
      "  percentiles        50 {:.6f}  90 {:.6f}  99 {:.6f}  99.9 {:.6f}\n"
      "same best token      {:.3f} %\n"
      "nll                  reference {:.6f}  model {:.6f}  difference {:+.6f}\n",
      r.tokens, r.scored, r.mean, r.max, r.max_token, r.p50, r.p90, r.p99, r.p999,
      100 * r.top1_agreement, r.reference_nll, r.nll, r.nll - r.reference_nll);
}

int run(const ParsedArgs& args, const Console& console) {
  const auto file = args.text("file");
  if (!file) throw_error(Code::BadInput, "octet kl needs a text", "add --file FILE");
  const std::string text = read_flag_file(*file, "--file");
  const InterruptScope interrupt(InterruptScope::Signals::AnyEnd);
  const DeviceInfo info = device_of(args, true);
  DeviceInfo reference_info = device_of(args, true, MaxIsa::Ignored);
  if (const auto isa = args.text("reference-max-isa"))
    reference_info.features = mask_isa(reference_info.features, *isa);
  const Side reference = open_side(model_path(args, "reference"), reference_info,
                                   open_device(args, reference_info), reference_options(args));
  const Side model =
      open_side(model_path(args, "model"), info, open_device(args, info), plan_options(args));
  require_same_tokenizer(reference.tokenizer, model.tokenizer);
  const std::vector<int32_t> tokens = encode_file(model.tokenizer, text, *file);
  if (tokens != reference.tokenizer.encode(text)) {
    throw_error(Code::BadInput, "the tokenizers of the two models give other ids for the text",
                "a divergence per token means something for equal tokens only");
  }
  ThreadPool pool(info.threads);
  ProgressBar bar("comparing", static_cast<int64_t>(tokens.size()), {"tokens"});
  const auto advance = [&](int64_t done) {
    InterruptScope::check("the text was not read to its end");
    bar.set(done);
  };
  advance(0);
  const KlResult result = kl_divergence(*reference.engine, *model.engine, tokens, pool, advance);
  bar.finish();
  console.out(args.on("json") ? json_text(result) : plain_text(result));
  return 0;
}

}  // namespace

const Command kKlCommand{&kSpec, run};

}  // namespace octet
