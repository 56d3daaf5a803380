#include "plan/model_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "op/problem_text.h"
#include "plan/binding.h"
#include "plan/budget.h"

namespace octet {
namespace {

// Key of layers that share one resolution.
using GroupKey = std::tuple<std::string, LayerShape, LayerQuant, bool, std::string>;

std::vector<std::string_view> known_names() {
  std::vector<std::string_view> names;
  for (const LinearKernel* k : kernels<LinearKernel>()) names.push_back(k->name);
  const auto add = [&](auto list) {
    for (const auto* k : list) names.push_back(k->name);
  };
  add(kernels<Kernel<Attention>>());
  add(kernels<Kernel<RmsNorm>>());
  add(kernels<Kernel<Rope>>());
  add(kernels<Kernel<SiluMul>>());
  add(kernels<Kernel<RoundBf16>>());
  add(kernels<Kernel<Gather>>());
  add(kernels<Kernel<Quantize>>());
  add(kernels<Kernel<ArgMax>>());
  add(kernels<Kernel<TopK>>());
  add(kernels<Kernel<LogProb>>());
  add(kernels<Kernel<Sample>>());
  add(kernels<Kernel<AbsMax>>());
  return names;
}

// "A; B": all that one kernel says.
std::string joined(const std::vector<Refusal>& refusals) {
  std::string text;
  for (const Refusal& refusal : refusals) text += (text.empty() ? "" : "; ") + refusal.detail;
  return text;
}

std::string reasons(const Resolution& resolution) {
  std::string text;
  for (const LinearAttempt& attempt : resolution.attempts) {
    if (is_of_another_device(attempt.refusals)) continue;
    text += fmt::format("\n  - {:5} {}  {}", name(attempt.kernel->scheme), attempt.kernel->name,
                        joined(attempt.refusals));
  }
  return text.empty() ? "\n  - every linear kernel is of another device" : text;
}

// What the user can change when no kernel is left: of the flags that keep kernels out, those given.
std::string try_line(const PlanOptions& options) {
  std::vector<std::string_view> given;
  if (!options.policy.disabled.empty()) given.push_back("--disable");
  if (!options.policy.forced.empty()) given.push_back("--kernel");
  if (options.policy.backend != nullptr) given.push_back("--linear-backend");
  if (options.isa_limited) given.push_back("--max-isa");
  if (!options.policy.quarantine.entries.empty()) given.push_back("--quarantine");
  if (options.policy.carrier == Carrier::F32) given.push_back("--dtype");
  if (given.empty())
    return "\n  try: another --device; `octet kernels` lists what each kernel needs and takes";
  const std::string_view last = given.back();
  given.pop_back();
  return given.empty() ? fmt::format("\n  try: leave out {}", last)
                       : fmt::format("\n  try: leave out {} or {}", fmt::join(given, ", "), last);
}

// Resolves every distinct layer and records which group each layer belongs to.
void resolve_layers(ModelPlan& plan) {
  const auto catalogue = kernels<LinearKernel>();
  std::map<GroupKey, size_t> groups;
  plan.layer_group.reserve(plan.request.layers.size());
  for (size_t i = 0; i < plan.request.layers.size(); ++i) {
    const PlanLayer& layer = plan.request.layers[i];
    const LayerPolicy policy =
        for_layer(plan.options.policy, layer.module, layer.quant.weight.dtype, catalogue);
    const LayerShape shape = rank_shape(layer, plan.options.ranks);
    const GroupKey key{layer.pattern, shape, layer.quant, layer.bias, policy.forced.value_or("")};
    const auto [it, fresh] = groups.try_emplace(key, plan.layers.size());
    if (fresh) {
      plan.layers.push_back(
          {layer.pattern,
           shape,
           layer.quant,
           layer.bias,
           policy.forced.has_value() || policy.backend != nullptr,
           policy.backend != nullptr ? policy.backend->name : "",
           {},
           resolve(layer.quant, shape, plan.device, catalogue, schemes(), policy)});
    }
    plan.layers[it->second].members.push_back(i);
    plan.layer_group.push_back(it->second);
  }
}

// A stored scale that the chosen arithmetic has no use for.
bool leaves_input_scale(const PlannedLayers& group) {
  return group.quant.input && group.quant.input->timing == ScaleTiming::Static &&
         group.resolution.chosen && !group.resolution.problem().activation;
}

// Whether ranks cut a tile of the layer's dynamic input scales, so that each scales its own part.
bool cuts_inputs(const PlannedLayers& group, const ModelPlan& plan) {
  const PlanLayer& layer = plan.request.layers[group.members.front()];
  if (layer.parallel != Parallel::Row || plan.options.ranks == 1) return false;
  if (!group.resolution.chosen) return false;
  const auto& input = group.resolution.problem().activation;
  return input && input->timing == ScaleTiming::Dynamic && group.shape.k % input->tile.cols != 0;
}

void note_cut_inputs(ModelPlan& plan) {
  std::vector<std::string_view> cut;
  for (const PlannedLayers& group : plan.layers) {
    if (cuts_inputs(group, plan)) cut.push_back(group.pattern);
  }
  if (cut.empty()) return;
  plan.notes.push_back(fmt::format(
      "-tp {} cuts the dynamic input scales of {}: each rank scales its part anew, so answers "
      "differ a little from those of one rank",
      plan.options.ranks, fmt::join(cut, ", ")));
}

// What the plan says when no kernel is of the device's kind: one line instead of one per layer and
// operation.
std::optional<std::string> without_kernels(const DeviceInfo& device) {
  std::vector<std::string_view> kinds;
  for (const LinearKernel* kernel : kernels<LinearKernel>()) {
    if (kernel->device == device.kind) return std::nullopt;
    const std::string_view kind = name(kernel->device);
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  if (kinds.empty()) return std::nullopt;  // a program of tests
  std::sort(kinds.begin(), kinds.end());
  return fmt::format("\"{}\" ({}): this program has no kernels for {}\n  try: a device of {}",
                     device.name, name(device.kind), name(device.kind), fmt::join(kinds, " or "));
}

void judge_layers(ModelPlan& plan) {
  for (const PlannedLayers& group : plan.layers) {
    if (!group.resolution.chosen) {
      plan.failures.push_back(fmt::format(
          "cannot plan {} on \"{}\" ({})\n  checkpoint: weights {}, input {}, N={} K={}{}{}",
          group.pattern, plan.device.name, name(plan.device.kind), to_string(group.quant.weight),
          group.quant.input ? to_string(*group.quant.input) : "unquantised", group.shape.n,
          group.shape.k, reasons(group.resolution), try_line(plan.options)));
      continue;
    }
    const SchemeId declared = declared_scheme(group.quant);
    const SchemeId chosen = group.resolution.problem().scheme;
    if (declared != chosen) {
      plan.notes.push_back(fmt::format("{}: {} instead of the declared {}", group.pattern,
                                       name(chosen), name(declared)));
    }
  }
  const auto unused = std::find_if(plan.layers.begin(), plan.layers.end(), leaves_input_scale);
  if (unused != plan.layers.end()) {
    plan.notes.push_back(
        fmt::format("stored static input scales are not used: {} takes inputs unquantised",
                    name(unused->resolution.problem().scheme)));
  }
  note_cut_inputs(plan);
  const auto tokens =
      std::find_if(plan.layers.begin(), plan.layers.end(),
                   [](const PlannedLayers& g) { return g.quant.per_token_for_tensor; });
  if (tokens != plan.layers.end()) {
    plan.notes.push_back(
        "dynamic per-tensor input scales are computed per token: per tensor, an answer would "
        "depend on its batch");
  }
}

// Refuses the kernels that are in quarantine for this problem and chooses anew among the others.
template <class Op>
void quarantine(Selection<Kernel<Op>>& selection, const ModelPlan& plan) {
  selection.chosen.reset();
  for (size_t i = 0; i < selection.attempts.size(); ++i) {
    Attempt<Kernel<Op>>& attempt = selection.attempts[i];
    const QuarantineEntry key =
        quarantine_key(attempt.kernel->name, selection.problem, plan.device);
    if (auto no = plan.options.policy.quarantine.refusal(key))
      attempt.refusals.push_back(*std::move(no));
    if (attempt.refusals.empty() && !selection.chosen) selection.chosen = i;
  }
}

template <class Op>
void choose(Selection<Kernel<Op>>& selection, const typename Op::Problem& problem,
            ModelPlan& plan) {
  selection = select<Op>(kernels<Kernel<Op>>(), problem, plan.device, plan.options.policy.disabled);
  selection.problem = problem_text(problem);
  quarantine(selection, plan);
  if (selection.chosen) return;
  std::string text = fmt::format("cannot plan {} on \"{}\" ({})", Op::kName, plan.device.name,
                                 name(plan.device.kind));
  std::string here;
  for (const auto& attempt : selection.attempts) {
    if (is_of_another_device(attempt.refusals)) continue;
    here += fmt::format("\n  - {}  {}", attempt.kernel->name, joined(attempt.refusals));
  }
  text += here.empty() ? "\n  - every kernel for it is of another device" : here;
  plan.failures.push_back(std::move(text) + try_line(plan.options));
}

// The inputs that the chosen linear kernels take, each once.
std::vector<QuantSpec> linear_inputs(const ModelPlan& plan) {
  std::vector<QuantSpec> inputs;
  for (const PlannedLayers& group : plan.layers) {
    if (!group.resolution.chosen) continue;
    const LinearProblem& problem = group.resolution.problem();
    if (!problem.activation && problem.input == DType::F32) continue;
    const QuantSpec spec = problem.activation.value_or(QuantSpec{problem.input});
    if (std::find(inputs.begin(), inputs.end(), spec) == inputs.end()) inputs.push_back(spec);
  }
  return inputs;
}

void choose_ops(ModelPlan& plan) {
  const ModelDims& d = plan.dims;
  OpPlan& ops = plan.ops;
  choose<Attention>(ops.attention, {d.heads, d.kv_heads, d.head_dim, plan.kv.dtype, 0, 0}, plan);
  choose<RmsNorm>(ops.norm, {d.hidden}, plan);
  choose<Rope>(ops.rope, {d.head_dim, d.rotary_dim, plan.kv.dtype, plan.request.interleaved_rope},
               plan);
  choose<SiluMul>(ops.silu_mul, {}, plan);
  choose<RoundBf16>(ops.round, {}, plan);
  choose<Gather>(ops.embedding, {plan.request.embedding}, plan);
  choose<Gather>(ops.gather_rows, {DType::F32}, plan);
  choose<ArgMax>(ops.argmax, {}, plan);
  choose<TopK>(ops.topk, {}, plan);
  choose<LogProb>(ops.logprob, {}, plan);
  choose<Sample>(ops.sample, {}, plan);
  choose<AbsMax>(ops.absmax, {}, plan);
  for (const QuantSpec& spec : linear_inputs(plan)) {
    ops.quantize.emplace_back(spec, Selection<Kernel<Quantize>>{});
    choose<Quantize>(ops.quantize.back().second, {spec, d.hidden}, plan);
  }
}

}  // namespace

ModelPlan make_plan(PlanRequest request, const DeviceInfo& device, PlanOptions options) {
  ModelPlan plan;
  plan.request = std::move(request);
  plan.options = std::move(options);
  plan.device = device;
  plan.notes = plan.request.notes;
  const auto known = known_names();
  check_names(plan.options.policy, known);
  if (auto note = unknown_kernels_note(plan.options.policy.quarantine, known))
    plan.notes.push_back(*std::move(note));
  if (auto failure = foreign_backend(plan.options.policy, device, kernels<LinearKernel>())) {
    plan.failures.push_back(*std::move(failure));
    plan.options.policy.backend = nullptr;
  }
  check_bindings(plan.request, plan.options.policy, kernels<LinearKernel>());
  if (const LinearBackend* backend = plan.options.policy.backend;
      backend != nullptr && !backend->note.empty()) {
    plan.notes.emplace_back(backend->note);
  }
  plan.ranks_requested = plan.options.ranks;
  plan.ranks_possible = possible_ranks(plan.request);
  if (auto failure = unshareable(plan.request, plan.options.ranks)) {
    plan.failures.push_back(*std::move(failure));
    plan.options.ranks = 1;
    plan.options.rank = 0;
  }
  plan.dims = rank_dims(plan.request.dims, plan.options.ranks);
  plan.kv = plan.request.kv;
  plan.kv.kv_heads = plan.dims.kv_heads;
  for (const std::string& layer : plan.request.unsupported) plan.failures.push_back(layer);
  const size_t failures = plan.failures.size();
  resolve_layers(plan);
  judge_layers(plan);
  choose_ops(plan);
  if (auto failure = without_kernels(device)) {
    plan.failures.resize(failures);
    plan.failures.push_back(*std::move(failure));
  }
  make_budget(plan);
  return plan;
}

void require_runnable(const ModelPlan& plan) {
  if (plan.failures.empty()) return;
  std::string text;
  for (const std::string& failure : plan.failures) text += (text.empty() ? "" : "\n") + failure;
  throw_error(Code::CannotRun, text,
              "`octet plan` shows every kernel and reason; --disable, --kernel, --max-isa and "
              "--max-model-len change the plan");
}

}  // namespace octet
