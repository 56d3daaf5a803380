#include "plan/budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/explain.h"

namespace octet {
namespace {

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

// Whether the kernels that ask for scratch are known.
bool has_kernels(const ModelPlan& plan) {
  return plan.ops.attention.chosen &&
         std::all_of(plan.layers.begin(), plan.layers.end(),
                     [](const PlannedLayers& group) { return group.resolution.chosen; });
}

// Plans for `tokens` of context: scratch grows with it.
void plan_context(ModelPlan& plan, int64_t tokens) {
  Budget& b = plan.budget;
  b.max_model_len = tokens;
  if (has_kernels(plan)) plan.workspace = workspace_sizes(plan);
  b.scratch = plan.workspace.total();
  const uint64_t used = b.weights + b.scratch;
  b.fits_tokens = b.device > used && b.kv_per_token > 0
                      ? static_cast<int64_t>((b.device - used) / b.kv_per_token)
                      : 0;
}

// The most tokens of context, at most `limit`, that fit with the scratch that they need; 0: none.
int64_t largest_context(ModelPlan& plan, int64_t limit) {
  int64_t fits = 0;
  int64_t too_many = limit + 1;
  while (too_many - fits > 1) {
    const int64_t middle = fits + (too_many - fits) / 2;
    plan_context(plan, middle);
    (plan.budget.fits_tokens >= middle ? fits : too_many) = middle;
  }
  return fits;
}

std::string exact(uint64_t bytes) {
  return bytes < 1000 ? human_bytes(bytes)
                      : fmt::format("{} ({} bytes)", human_bytes(bytes), bytes);
}

// Why the plan does not fit, and what would.
std::string no_room(const ModelPlan& plan, int64_t largest) {
  const Budget& b = plan.budget;
  return fmt::format(
      "{} does not fit on \"{}\": weights {} + scratch {} + KV {} for {} tokens = {}, the device "
      "has {}\n  try: {}",
      plan.request.model, plan.device.name, exact(b.weights), exact(b.scratch), exact(b.kv()),
      b.max_model_len, exact(b.weights + b.scratch + b.kv()), exact(b.device),
      largest >= 1 ? fmt::format("--max-model-len {}, the most that fits", largest)
                   : "a device with more memory, or a smaller --max-num-batched-tokens (less "
                     "scratch): no token of context fits");
}

}  // namespace

void make_budget(ModelPlan& plan) {
  Budget& b = plan.budget;
  b.device = plan.device.memory_bytes;
  b.weights = weight_bytes(plan, b.copied);
  b.kv_per_token = static_cast<uint64_t>(plan.kv.bytes_per_token());
  const int64_t limit = plan.request.dims.max_position;
  const int64_t asked = plan.options.max_model_len;
  if (asked > limit) {
    plan.notes.push_back(fmt::format(
        "--max-model-len {} is over the {} positions the model was made for", asked, limit));
  }
  const int64_t wanted = asked > 0 ? asked : limit;
  plan_context(plan, wanted);
  if (b.fits_tokens >= wanted) return;
  const int64_t largest = largest_context(plan, wanted);
  const bool shorten = asked == 0 && largest >= 1;
  plan_context(plan, shorten ? largest : wanted);
  if (shorten) {
    plan.notes.push_back(
        fmt::format("context shortened from {} to the {} tokens that fit", limit, largest));
  } else {
    plan.failures.push_back(no_room(plan, largest));
  }
}

}  // namespace octet
