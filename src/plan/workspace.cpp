#include "plan/workspace.h"

#include <algorithm>

#include "plan/model_plan.h"

namespace octet {
namespace {

// Rows that the head computes in one pass: bounds the logits to a few MiB even for large
// vocabularies.
constexpr int64_t kLogitRows = 16;

size_t floats(int64_t rows, int64_t width) {
  return static_cast<size_t>(rows * width) * sizeof(float);
}

void add_linear_inputs(const ModelPlan& plan, WorkspaceSizes& sizes) {
  for (const PlannedLayers& group : plan.layers) {
    const LinearProblem& problem = group.resolution.problem();
    const LinearKernel& kernel = *group.resolution.kernel();
    const int64_t k = group.shape.k;
    if (problem.activation) {
      sizes.codes = std::max(sizes.codes, static_cast<size_t>(sizes.rows * k));
      sizes.code_scales =
          std::max(sizes.code_scales, floats(sizes.rows, problem.activation->tile.tile_cols(k)));
    } else if (problem.input != DType::F32) {
      sizes.codes =
          std::max(sizes.codes, static_cast<size_t>(sizes.rows * k * bytes_of(problem.input)));
    }
    if (kernel.scratch_bytes != nullptr) {
      for (const int64_t m : {int64_t{1}, sizes.rows}) {
        sizes.linear_scratch =
            std::max(sizes.linear_scratch, kernel.scratch_bytes(problem, m, plan.device.threads));
      }
    }
  }
}

}  // namespace

std::vector<std::pair<std::string_view, size_t>> WorkspaceSizes::parts() const {
  return {{"residual", residual},
          {"normed", normed},
          {"delta", delta},
          {"q", q},
          {"k", k},
          {"v", v},
          {"attention", attention},
          {"gate", gate},
          {"up", up},
          {"codes", codes},
          {"code_scales", code_scales},
          {"linear_scratch", linear_scratch},
          {"attention_scratch", attention_scratch},
          {"head_input", head_input},
          {"logits", logits},
          {"sample_scratch", sample_scratch},
          {"rope_angles", rope_angles}};
}

size_t WorkspaceSizes::total() const {
  size_t bytes = 0;
  for (const auto& [name, size] : parts()) bytes += size;
  return bytes;
}

WorkspaceSizes workspace_sizes(const ModelPlan& plan) {
  const ModelDims& d = plan.dims;
  WorkspaceSizes sizes;
  sizes.rows = plan.options.max_batch_tokens;
  sizes.logit_rows = std::min(sizes.rows, std::max(kLogitRows, plan.options.max_sequences));
  sizes.residual = sizes.normed = sizes.delta = floats(sizes.rows, d.hidden);
  sizes.q = sizes.attention = floats(sizes.rows, d.heads * d.head_dim);
  sizes.k = sizes.v = floats(sizes.rows, d.kv_heads * d.head_dim);
  sizes.gate = sizes.up = floats(sizes.rows, d.intermediate);
  sizes.head_input = floats(sizes.logit_rows, d.hidden);
  sizes.logits = floats(sizes.logit_rows, plan.request.dims.vocab);
  sizes.sample_scratch = 2 * sizes.logits;
  sizes.rope_angles = floats(sizes.rows, d.rotary_dim);
  add_linear_inputs(plan, sizes);
  const Kernel<Attention>* attention = plan.ops.attention.kernel();
  if (attention->scratch_bytes != nullptr) {
    sizes.attention_scratch = attention->scratch_bytes(
        {d.heads, d.kv_heads, d.head_dim, plan.kv.dtype, sizes.rows, plan.budget.max_model_len},
        plan.device.threads);
  }
  return sizes;
}

}  // namespace octet
