#include "cli/plan_flags.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/mapped_file.h"
#include "cli/device_flag.h"

namespace octet {
namespace {

constexpr std::string_view kGroup = "Plan";
constexpr uintmax_t kMaxQuarantineBytes = 16 << 20;

Quarantine read_quarantine(const std::string& path, QuarantineFile rule) {
  if (rule == QuarantineFile::MayBeNew && !is_there(path)) return {path, {}};
  std::string text;
  try {
    text = read_text_file(path, kMaxQuarantineBytes);
  } catch (const Error& error) {
    throw error.with("--quarantine")
        .or_hint("`octet verify MODEL --quarantine FILE` writes such a file");
  }
  return parse_quarantine(text, path);
}

}  // namespace

Flag threads_flag(std::string_view group) {
  return {.name = "threads",
          .letter = 't',
          .kind = FlagKind::Integer,
          .metavar = "N",
          .help = "threads of the CPU",
          .default_text = "all",
          .min = 1,
          .max = 1024,
          .group = group};
}

std::vector<Flag> plan_flags() {
  return {
      device_flag(kGroup),
      {.name = "prefer",
       .kind = FlagKind::Text,
       .metavar = "SCHEME",
       .help = "try this arithmetic first",
       .default_text = "what the kernels prefer",
       .choices = {"w8a8", "w8a16"},
       .group = kGroup},
      {.name = "dtype",
       .kind = FlagKind::Text,
       .help = "carrier of activations: auto takes what each kernel takes, bfloat16 rounds at "
               "layer boundaries",
       .default_value = "auto",
       .choices = {"auto", "float32", "bfloat16"},
       .group = kGroup},
      {.name = "kernel",
       .kind = FlagKind::Repeated,
       .metavar = "[LAYER-REGEX=]NAME",
       .help = "bind the layers that the expression finds, and whose weights the kernel takes, to "
               "this kernel",
       .group = kGroup},
      {.name = "linear-backend",
       .kind = FlagKind::Text,
       .metavar = "BACKEND",
       .help = "bind the layers whose weights they take to a set of kernels: xpu, W8A8 of OpenCL "
               "devices; xpu_woq, W8A16 of them; torch, W8A8 in the reference formulation; "
               "reference, the plainest of the device",
       .default_value = "auto",
       .choices = {"auto", "xpu", "xpu_woq", "torch", "reference"},
       .group = kGroup},
      {.name = "disable",
       .kind = FlagKind::TextList,
       .metavar = "NAME",
       .help = "never use these kernels",
       .group = kGroup},
      {.name = "quarantine",
       .kind = FlagKind::Path,
       .metavar = "FILE",
       .help = "never use kernels for the problems on which octet verify found them wrong; verify "
               "adds to the file",
       .group = kGroup},
      {.name = "max-isa",
       .kind = FlagKind::Text,
       .help = "use no instruction set above this one",
       .default_text = "what the CPU has",
       .choices = {"baseline", "avx2", "avx512"},
       .group = kGroup},
      {.name = "max-model-len",
       .kind = FlagKind::Size,
       .metavar = "TOKENS",
       .help = "tokens of context, prompt and answer together",
       .default_text = "the model's limit, or what fits",
       .min = 1,
       .max = 1 << 30,
       .group = kGroup},
      {.name = "max-num-batched-tokens",
       .kind = FlagKind::Size,
       .metavar = "TOKENS",
       .help = "tokens computed in one step",
       .default_value = "512",
       .min = 1,
       .max = 1 << 16,
       .group = kGroup},
      {.name = "tensor-parallel-size",
       .aliases = {"tp"},
       .kind = FlagKind::Integer,
       .metavar = "N",
       .help = "ranks that share the model; more than 1 can be planned, not yet run",
       .default_value = "1",
       .min = 1,
       .max = 1024,
       .group = kGroup},
      threads_flag(kGroup),
  };
}

std::optional<SchemeId> scheme_flag(const ParsedArgs& args, std::string_view flag) {
  const auto word = args.text(flag);
  if (!word) return std::nullopt;
  return *word == "w8a8" ? SchemeId::W8A8 : SchemeId::W8A16;
}

Carrier carrier_flag(const ParsedArgs& args, std::string_view flag) {
  const std::string word = args.text(flag).value_or("auto");
  return word == "float32" ? Carrier::F32 : (word == "bfloat16" ? Carrier::BF16 : Carrier::Auto);
}

PlanOptions plan_options(const ParsedArgs& args, QuarantineFile quarantine) {
  PlanOptions options;
  options.policy.prefer = scheme_flag(args, "prefer");
  options.policy.carrier = carrier_flag(args, "dtype");
  options.policy.disabled = args.list("disable");
  for (const std::string& rule : args.list("kernel"))
    options.policy.forced.push_back(parse_kernel_rule(rule));
  options.policy.backend = find_backend(args.text("linear-backend").value_or("auto"));
  if (const auto file = args.text("quarantine"))
    options.policy.quarantine = read_quarantine(*file, quarantine);
  options.isa_limited = args.has("max-isa");
  options.max_model_len = args.integer("max-model-len").value_or(0);
  options.max_batch_tokens = args.integer("max-num-batched-tokens").value_or(512);
  options.ranks = static_cast<int>(args.integer("tensor-parallel-size").value_or(1));
  return options;
}

void say_quarantine_notes(const ModelPlan& plan, const Console& console) {
  for (const std::string& note : plan.notes) {
    if (note.starts_with("--quarantine ")) console.say(fmt::format("note: {}", note));
  }
}

}  // namespace octet
