#pragma once
// Sizes of the buffers that a forward pass works in: the plan counts them, the model allocates
// them.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace octet {

struct ModelPlan;

// Bytes of each buffer, for the plan's largest step. Float32 unless said otherwise.
struct WorkspaceSizes {
  int64_t rows = 0;        // tokens of one step
  int64_t logit_rows = 0;  // rows of one pass of the head

  size_t residual = 0;      // [rows, hidden]
  size_t normed = 0;        // [rows, hidden]
  size_t delta = 0;         // [rows, hidden]
  size_t q = 0;             // [rows, heads * head_dim]
  size_t k = 0, v = 0;      // [rows, kv_heads * head_dim]
  size_t attention = 0;     // [rows, heads * head_dim]
  size_t gate = 0, up = 0;  // [rows, intermediate]
  size_t codes = 0;         // quantised or bfloat16 input of a linear layer, widest
  size_t code_scales = 0;
  size_t linear_scratch = 0;
  size_t attention_scratch = 0;
  size_t head_input = 0;      // [logit_rows, hidden]
  size_t logits = 0;          // [logit_rows, vocab]
  size_t sample_scratch = 0;  // [logit_rows, 2 * vocab]
  size_t rope_angles = 0;     // [rows, rotary_dim]

  // Every buffer by its name above.
  std::vector<std::pair<std::string_view, size_t>> parts() const;
  size_t total() const;
};

// Computes the sizes from the plan's dims, kernels and options. Requires every operation to have a
// kernel.
WorkspaceSizes workspace_sizes(const ModelPlan& plan);

}  // namespace octet
