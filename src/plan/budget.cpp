#include "plan/budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/plural.h"
#include "plan/explain.h"

namespace octet {
namespace {

// Whether the kernel of a layer lays its codes out anew.
bool is_repacked(const PlannedLayers& group) {
  const LinearKernel* kernel = group.resolution.kernel();
  return kernel != nullptr && kernel->code_bytes != nullptr;
}

// Bytes of the codes of one layer as its kernel keeps them.
uint64_t code_bytes(const PlannedLayers& group) {
  if (is_repacked(group))
    return group.resolution.kernel()->code_bytes(group.shape.n, group.shape.k);
  return static_cast<uint64_t>(group.shape.n * group.shape.k * bytes_of(group.quant.weight.dtype));
}

uint64_t weight_bytes(const ModelPlan& plan, uint64_t& copied) {
  const auto ranks = static_cast<uint64_t>(plan.options.ranks);
  uint64_t bytes = plan.request.embedding_bytes / ranks + plan.request.other_bytes;
  for (const PlannedLayers& group : plan.layers) {
    const uint64_t count = group.members.size();
    (is_repacked(group) ? copied : bytes) += count * code_bytes(group);
    copied += count * in_place_bytes(group.quant.weight, group.shape.n, group.shape.k, group.bias);
  }
  return bytes + copied;
}

// One buffer that the model allocates at once.
struct AtOnce {
  std::string what;
  uint64_t bytes;
  std::string_view hint;  // what makes it smaller
};

// The cache of every layer is one buffer of whole blocks.
AtOnce cache_buffer(const ModelPlan& plan) {
  const int64_t block = plan.kv.block_size;
  const int64_t tokens = (plan.budget.max_model_len + block - 1) / block * block;
  return {"the KV cache", plan.budget.kv_per_token * static_cast<uint64_t>(tokens),
          "a smaller --max-model-len"};
}

// The buffers that grow with the context.
std::vector<AtOnce> context_buffers(const ModelPlan& plan) {
  return {cache_buffer(plan),
          {"the scratch of attention", plan.workspace.attention_scratch,
           "a smaller --max-model-len or --max-num-batched-tokens"}};
}

bool over_limit(const ModelPlan& plan, const AtOnce& buffer) {
  const uint64_t limit = plan.device.max_allocation_bytes;
  return limit != 0 && buffer.bytes > limit;
}

// Whether the kernels that ask for scratch are known.
bool has_kernels(const ModelPlan& plan) {
  return plan.ops.attention.chosen &&
         std::all_of(plan.layers.begin(), plan.layers.end(),
                     [](const PlannedLayers& group) { return group.resolution.chosen; });
}

bool fits_memory(const Budget& b) {
  const uint64_t used = b.weights + b.scratch;
  return b.device > used && b.kv_per_token > 0 &&
         static_cast<uint64_t>(b.max_model_len) <= (b.device - used) / b.kv_per_token;
}

// Plans for `tokens` of context: scratch grows with it. Whether it fits.
bool plan_context(ModelPlan& plan, int64_t tokens) {
  Budget& b = plan.budget;
  b.max_model_len = tokens;
  if (has_kernels(plan)) plan.workspace = workspace_sizes(plan);
  b.scratch = plan.workspace.total();
  const std::vector<AtOnce> buffers = context_buffers(plan);
  return fits_memory(b) && std::none_of(buffers.begin(), buffers.end(), [&](const AtOnce& buffer) {
           return over_limit(plan, buffer);
         });
}

// The most tokens of context that fit with the scratch that they need; 0: none.
int64_t largest_context(ModelPlan& plan) {
  const Budget& b = plan.budget;
  if (b.kv_per_token == 0 || b.device <= b.weights) return 0;
  int64_t fits = 0;
  // Without scratch no more than this would fit.
  auto too_many = static_cast<int64_t>((b.device - b.weights) / b.kv_per_token) + 1;
  while (too_many - fits > 1) {
    const int64_t middle = fits + (too_many - fits) / 2;
    (plan_context(plan, middle) ? fits : too_many) = middle;
  }
  return fits;
}

std::string exact(uint64_t bytes) {
  return bytes < 1000 ? human_bytes(bytes)
                      : fmt::format("{} ({} bytes)", human_bytes(bytes), bytes);
}

// Why the plan does not fit, and what would.
std::string no_room(const ModelPlan& plan) {
  const Budget& b = plan.budget;
  return fmt::format(
      "{} does not fit on \"{}\": weights {} + scratch {} + KV {} for {} = {}, the device "
      "has {}\n  try: {}",
      plan.request.model, plan.device.name, exact(b.weights), exact(b.scratch), exact(b.kv()),
      counted(b.max_model_len, "token"), exact(b.weights + b.scratch + b.kv()), exact(b.device),
      b.fits_tokens >= 1 ? fmt::format("--max-model-len {}, the most that fits", b.fits_tokens)
                         : "a device with more memory, or a smaller --max-num-batched-tokens (less "
                           "scratch): no token of context fits");
}

// The largest weight, the embedding, the cache and the parts of the scratch.
std::vector<AtOnce> all_buffers(const ModelPlan& plan) {
  std::vector<AtOnce> buffers = context_buffers(plan);
  constexpr std::string_view kRanks = "more ranks (-tp), or a device that allocates more at once";
  for (const PlannedLayers& group : plan.layers) {
    buffers.push_back({"a weight of " + group.pattern,
                       code_bytes(group) + in_place_bytes(group.quant.weight, group.shape.n,
                                                          group.shape.k, group.bias),
                       kRanks});
  }
  buffers.push_back({"the embedding",
                     plan.request.embedding_bytes / static_cast<uint64_t>(plan.options.ranks),
                     kRanks});
  for (const auto& [name, bytes] : plan.workspace.parts()) {
    if (name == "attention_scratch") continue;  // grows with the context: it is there already
    buffers.push_back(
        {fmt::format("the scratch buffer {}", name), bytes, "a smaller --max-num-batched-tokens"});
  }
  return buffers;
}

// A failure for every buffer that the device does not allocate at once.
void judge_allocations(ModelPlan& plan) {
  for (const AtOnce& buffer : all_buffers(plan)) {
    if (!over_limit(plan, buffer)) continue;
    plan.failures.push_back(
        fmt::format("{}: {} needs {} at once, \"{}\" allocates at most {} at once\n  try: {}",
                    plan.request.model, buffer.what, exact(buffer.bytes), plan.device.name,
                    exact(plan.device.max_allocation_bytes), buffer.hint));
  }
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
    plan.notes.push_back(fmt::format("--max-model-len {} is over the {} the model was made for",
                                     asked, counted(limit, "position")));
  }
  const int64_t wanted = asked > 0 ? asked : limit;
  b.fits_tokens = largest_context(plan);
  const bool fits = b.fits_tokens >= wanted;
  const bool shorten = !fits && asked == 0 && b.fits_tokens >= 1;
  plan_context(plan, shorten ? b.fits_tokens : wanted);
  if (shorten) {
    plan.notes.push_back(fmt::format("context shortened from {} to the {} that fit", limit,
                                     counted(b.fits_tokens, "token")));
  } else if (!fits && !fits_memory(b)) {
    plan.failures.push_back(no_room(plan));
  }
  judge_allocations(plan);
}

}  // namespace octet
