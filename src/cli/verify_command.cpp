// octet verify: are the chosen kernels right on this machine, for this model?
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/plural.h"
#include "base/printable.h"
#include "cli/command_list.h"
#include "cli/device_flag.h"
#include "cli/interrupt.h"
#include "cli/model_argument.h"
#include "cli/plan_flags.h"
#include "cli/planned_model.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "evaluate/verify.h"

namespace octet {
namespace {

const CommandSpec kSpec{
    .name = "verify",
    .summary =
        "Run every kernel that the plan chose on the model's own weights against double "
        "precision",
    .description =
        "Of layers that are alike the first, the middle and the last are run, on 1, 5 and 64 "
        "random tokens; as many outputs are compared as a bounded number of products allows, "
        "which for one token is all of them in most models. Every error is held against the bound "
        "that follows from the kernel's order of sums. Quantised inputs must be equal to the bit. "
        "The other operations (norms, rotary embedding, attention, sampling and the like) run as "
        "the model calls them, with its own sizes, weights and frequencies. Tensors with values "
        "that are not finite, or so large that float32 may not hold their products, are named.\n\n"
        "With --quarantine FILE, kernels that gave wrong values are added to FILE, which need not "
        "exist; those that are in it already are not used.",
    .positionals = {{.name = "model", .help = kModelHelp, .path = true}},
    .flags = concat({{{.name = "all", .help = "run every layer and compare every output"},
                      {.name = "seed",
                       .kind = FlagKind::Unsigned,
                       .metavar = "N",
                       .help = "of the random tokens and of the sample",
                       .default_value = "1"},
                      {.name = "json", .help = "print one JSON object"},
                      revision_flag()},
                     plan_flags()}),
    .examples = {{"octet verify ./model --quarantine bad.json",
                  "find kernels that are wrong here and keep them out"},
                 {"octet run ./model --quarantine bad.json -p Hello", "run without them"}},
};

std::string decibel_text(const std::optional<double>& db) {
  return db ? fmt::format("{:.1f}", *db) : "-";
}

std::string layers_text(const VerifiedLayers& layers) {
  return layers.checked == layers.layers ? fmt::format("{}", layers.layers)
                                         : fmt::format("{} of {}", layers.checked, layers.layers);
}

void print_layers(const Verification& result, std::string& out) {
  TextTable table({Align::Left, Align::Left, Align::Right, Align::Right, Align::Right, Align::Right,
                   Align::Right, Align::Left});
  table.header({"layers", "kernel", "run", "values", "SNR dB", "input dB", "error/bound", ""});
  for (const VerifiedLayers& layers : result.layers) {
    table.row({printable_name(layers.pattern), layers.kernel, layers_text(layers),
               fmt::format("{}", layers.values), decibel_text(layers.snr_db),
               decibel_text(layers.input_snr_db),
               std::isfinite(layers.worst) ? fmt::format("{:.3g}", layers.worst) : "not finite",
               layers.failure.empty() ? "" : "WRONG"});
  }
  out += table.to_string();
}

void print_inputs(const Verification& result, std::string& out) {
  if (result.inputs.empty()) return;
  TextTable table({Align::Left, Align::Left, Align::Right, Align::Left});
  table.header({"input", "kernel", "codes", ""});
  for (const VerifiedInput& input : result.inputs) {
    table.row({input.output, input.kernel, fmt::format("{}", input.values),
               input.failure.empty() ? "equal" : "WRONG"});
  }
  out += "\n" + table.to_string();
}

void print_operations(const Verification& result, std::string& out) {
  TextTable table({Align::Left, Align::Left, Align::Left, Align::Right, Align::Right, Align::Left});
  table.header({"operation", "problem", "kernel", "values", "error/bound", ""});
  for (const VerifiedOp& op : result.operations) {
    table.row({op.op, op.problem, op.kernel, fmt::format("{}", op.values),
               fmt::format("{:.3g}", op.worst), op.failure.empty() ? "ok" : "WRONG"});
  }
  out += "\n" + table.to_string();
}

// What is wrong, one line each, or that nothing is.
void print_failures(const Verification& result, std::string& out) {
  out += "\n";
  if (result.passed()) {
    int64_t values = 0;
    for (const VerifiedLayers& layers : result.layers) values += layers.values;
    for (const VerifiedOp& op : result.operations) values += op.values;
    out += fmt::format("right: {} under their bounds\n", counted(values, "value"));
  }
  for (const VerifiedLayers& layers : result.layers) {
    if (layers.failure.empty()) continue;
    out += fmt::format("WRONG: {} {}\n", layers.kernel, printable_line(layers.failure));
  }
  for (const VerifiedInput& input : result.inputs) {
    if (input.failure.empty()) continue;
    out += fmt::format("WRONG: {} to {}: {}\n", input.kernel, input.output, input.failure);
  }
  for (const VerifiedOp& op : result.operations) {
    if (op.failure.empty()) continue;
    out += fmt::format("WRONG: {} {}: {}\n", op.kernel, op.problem, op.failure);
  }
  for (const DamagedTensor& tensor : result.damaged) {
    out += fmt::format("DAMAGED: tensor \"{}\" ({}): {} {}, the first{} at {}\n",
                       printable_name(tensor.name), name(tensor.dtype),
                       counted(tensor.values.count, "value"),
                       tensor.too_large ? "too large" : "not finite",
                       tensor.too_large ? fmt::format(", {:.9g},", *tensor.too_large) : "",
                       element_place(tensor.shape, tensor.values.first));
  }
}

// Adds the failures to the file of --quarantine. Returns what to tell the user next.
std::string quarantine_failures(const ParsedArgs& args, Quarantine list,
                                const Verification& result) {
  const auto file = args.text("quarantine");
  if (result.failures.empty()) return {};
  if (!file) return "--quarantine FILE keeps these kernels out of plans that are given the file";
  for (const QuarantineEntry& failure : result.failures) list.put(failure);
  replace_file(*file, to_json(list));
  return fmt::format("added to {}; commands with --quarantine {} do without them", *file, *file);
}

int run(const ParsedArgs& args, const Console& console) {
  const InterruptScope interrupt(InterruptScope::Signals::AnyEnd);
  const DeviceInfo info = device_of(args, true);
  const PlannedModel model = plan_model(model_path(args), info, open_device(args, info),
                                        plan_options(args, QuarantineFile::MayBeNew));
  say_quarantine_notes(model.prepared.plan, console);
  VerifyOptions options;
  options.all = args.on("all");
  options.seed = args.unsigned_integer("seed").value_or(1);
  options.octet = OCTET_VERSION;
  Verification result;
  {
    ProgressBar bar("verifying", static_cast<int64_t>(verify_bytes(model.prepared, options)));
    result = verify(model.prepared, *model.device, options, [&](uint64_t done) {
      InterruptScope::check("not every layer was run");
      bar.set(static_cast<int64_t>(done));
    });
  }
  if (args.on("json")) {
    console.out(to_json(result) + "\n");
  } else {
    std::string out;
    print_layers(result, out);
    print_inputs(result, out);
    print_operations(result, out);
    print_failures(result, out);
    console.out(out);
  }
  const Quarantine& before = model.prepared.plan.options.policy.quarantine;
  const std::string next = quarantine_failures(args, before, result);
  if (result.passed()) return 0;
  std::string what;
  if (!result.failures.empty()) {
    what = fmt::format("{} gave wrong values",
                       counted(result.failures.size(), "pair of kernel and problem"));
  }
  if (!result.damaged.empty()) {
    what += fmt::format("{}{} values that are not finite or too large", what.empty() ? "" : "; ",
                        result.damaged.size() == 1
                            ? std::string("1 tensor holds")
                            : fmt::format("{} tensors hold", result.damaged.size()));
  }
  console.say(what, next.empty() ? "get the damaged files again" : next);
  return exit_status(Code::CheckFailed);
}

}  // namespace

const Command kVerifyCommand{&kSpec, run};

}  // namespace octet
