#include "plan/model_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"

namespace octet {
namespace {

// Key of layers that share one resolution.
using GroupKey = std::tuple<std::string, LayerShape, LayerQuant, bool, std::string>;

int64_t share(int64_t whole, int ranks, std::string_view what) {
  if (whole % ranks != 0) {
    throw_error(
        Code::CannotRun,
        fmt::format("{} {} cannot be shared by {} ranks: not a multiple", whole, what, ranks),
        "choose -tp so that it divides heads, key-value heads, MLP width and vocabulary");
  }
  return whole / ranks;
}

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

std::string reasons(const Resolution& resolution) {
  std::string text;
  for (const LinearAttempt& attempt : resolution.attempts) {
    for (const Refusal& refusal : attempt.refusals) {
      text += fmt::format("\n  - {:5} {}  {}", name(attempt.kernel->scheme), attempt.kernel->name,
                          refusal.detail);
    }
  }
  return text.empty() ? "\n  (no kernel of any kind is linked)" : text;
}

// Resolves every distinct layer and records which group each layer belongs to.
void resolve_layers(ModelPlan& plan) {
  const auto catalogue = kernels<LinearKernel>();
  std::map<GroupKey, size_t> groups;
  plan.layer_group.reserve(plan.request.layers.size());
  bool bound = false;
  for (size_t i = 0; i < plan.request.layers.size(); ++i) {
    const PlanLayer& layer = plan.request.layers[i];
    const LayerPolicy policy =
        for_layer(plan.options.policy, layer.module, layer.quant.weight.dtype, catalogue);
    bound = bound || policy.forced.has_value();
    const LayerShape shape = rank_shape(layer, plan.options.ranks);
    const GroupKey key{layer.pattern, shape, layer.quant, layer.bias, policy.forced.value_or("")};
    const auto [it, fresh] = groups.try_emplace(key, plan.layers.size());
    if (fresh) {
      plan.layers.push_back(
          {layer.pattern,
           shape,
           layer.quant,
           layer.bias,
           policy.forced.has_value(),
           {},
           resolve(layer.quant, shape, plan.device, catalogue, schemes(), policy)});
    }
    plan.layers[it->second].members.push_back(i);
    plan.layer_group.push_back(it->second);
  }
  if (!bound && !plan.options.policy.forced.empty()) {
    throw_error(
        Code::BadInput,
        fmt::format("--kernel {} binds no layer of {}", plan.options.policy.forced.front().kernel,
                    plan.request.model),
        "the kernel must take the stored weight dtype, and the expression must match a layer name");
  }
}

// A stored scale that the chosen arithmetic has no use for.
bool leaves_input_scale(const PlannedLayers& group) {
  return group.quant.input && group.quant.input->timing == ScaleTiming::Static &&
         group.resolution.chosen && !group.resolution.problem().activation;
}

void judge_layers(ModelPlan& plan) {
  for (const PlannedLayers& group : plan.layers) {
    if (!group.resolution.chosen) {
      plan.failures.push_back(fmt::format(
          "cannot plan {} on \"{}\" ({})\n  checkpoint: weights {}, input {}, N={} K={}{}",
          group.pattern, plan.device.name, name(plan.device.kind), to_string(group.quant.weight),
          group.quant.input ? to_string(*group.quant.input) : "unquantised", group.shape.n,
          group.shape.k, reasons(group.resolution)));
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
  const auto tokens =
      std::find_if(plan.layers.begin(), plan.layers.end(),
                   [](const PlannedLayers& g) { return g.quant.per_token_for_tensor; });
  if (tokens != plan.layers.end()) {
    plan.notes.push_back(
        "dynamic per-tensor input scales are computed per token: per tensor, an answer would "
        "depend on its batch");
  }
}

template <class Op>
void choose(Selection<Kernel<Op>>& selection, const typename Op::Problem& problem,
            ModelPlan& plan) {
  selection = select<Op>(kernels<Kernel<Op>>(), problem, plan.device, plan.options.policy.disabled);
  if (selection.chosen) return;
  std::string text = fmt::format("cannot plan {} on \"{}\" ({})", Op::kName, plan.device.name,
                                 name(plan.device.kind));
  for (const auto& attempt : selection.attempts) {
    for (const Refusal& refusal : attempt.refusals) {
      text += fmt::format("\n  - {}  {}", attempt.kernel->name, refusal.detail);
    }
  }
  plan.failures.push_back(std::move(text));
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
  choose<Rope>(ops.rope, {d.head_dim, d.rotary_dim, plan.kv.dtype}, plan);
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

uint64_t weight_bytes(const ModelPlan& plan, uint64_t& copied) {
  const auto ranks = static_cast<uint64_t>(plan.options.ranks);
  uint64_t bytes = plan.request.embedding_bytes / ranks + plan.request.other_bytes;
  for (const PlannedLayers& group : plan.layers) {
    const uint64_t count = group.members.size();
    bytes += count * static_cast<uint64_t>(group.shape.n * group.shape.k *
                                           bytes_of(group.quant.weight.dtype));
    copied += count * in_place_bytes(group.quant.weight, group.shape.n, group.shape.k, group.bias);
  }
  return bytes + copied;
}

void budget(ModelPlan& plan) {
  Budget& b = plan.budget;
  b.device = plan.device.memory_bytes;
  b.weights = weight_bytes(plan, b.copied);
  b.kv_per_token = static_cast<uint64_t>(plan.kv.bytes_per_token());
  const int64_t limit = plan.request.dims.max_position;
  b.max_model_len = plan.options.max_model_len > 0 ? plan.options.max_model_len : limit;
  if (b.max_model_len > limit) {
    plan.notes.push_back(
        fmt::format("--max-model-len {} is over the {} positions the model was made for",
                    b.max_model_len, limit));
  }
  if (plan.failures.empty()) plan.workspace = workspace_sizes(plan);
  b.scratch = plan.workspace.total();
  const uint64_t used = b.weights + b.scratch;
  b.fits_tokens = b.device > used && b.kv_per_token > 0
                      ? static_cast<int64_t>((b.device - used) / b.kv_per_token)
                      : 0;
  if (plan.options.max_model_len == 0 && b.fits_tokens >= 1 && b.fits_tokens < b.max_model_len) {
    b.max_model_len = b.fits_tokens;
    plan.notes.push_back(
        fmt::format("context shortened from {} to the {} tokens that fit", limit, b.max_model_len));
  }
  if (b.fits_tokens < b.max_model_len || b.fits_tokens < 1) {
    plan.failures.push_back(
        fmt::format("{} does not fit on \"{}\": weights {} + scratch {} + KV {} for {} tokens = {} "
                    "bytes, the device has {}",
                    plan.request.model, plan.device.name, b.weights, b.scratch, b.kv(),
                    b.max_model_len, used + b.kv(), b.device));
  }
}

}  // namespace

ModelDims rank_dims(const ModelDims& dims, int ranks) {
  ModelDims rank = dims;
  rank.heads = share(dims.heads, ranks, "heads");
  rank.kv_heads = share(dims.kv_heads, ranks, "key-value heads");
  rank.intermediate = share(dims.intermediate, ranks, "MLP columns");
  rank.vocab = share(dims.vocab, ranks, "vocabulary entries");
  return rank;
}

LayerShape rank_shape(const PlanLayer& layer, int ranks) {
  switch (layer.parallel) {
    case Parallel::None:
      return layer.shape;
    case Parallel::Column:
      return {share(layer.shape.n, ranks, "rows of " + layer.module), layer.shape.k};
    case Parallel::Row:
      return {layer.shape.n, share(layer.shape.k, ranks, "columns of " + layer.module)};
  }
  return layer.shape;
}

ModelPlan make_plan(PlanRequest request, const DeviceInfo& device, PlanOptions options) {
  ModelPlan plan;
  plan.request = std::move(request);
  plan.options = std::move(options);
  plan.device = device;
  plan.notes = plan.request.notes;
  check_names(plan.options.policy, known_names());
  plan.dims = rank_dims(plan.request.dims, plan.options.ranks);
  plan.kv = plan.request.kv;
  plan.kv.kv_heads = plan.dims.kv_heads;
  for (const std::string& layer : plan.request.unsupported) plan.failures.push_back(layer);
  resolve_layers(plan);
  judge_layers(plan);
  choose_ops(plan);
  budget(plan);
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
