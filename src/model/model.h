#pragma once
// A model ready to run: the plan it follows and its weights, immutable after loading.
#include <memory>
#include <optional>
#include <vector>

#include "dist/communicator.h"
#include "model/config.h"
#include "model/describe.h"

namespace octet {

// A linear layer with everything the plan chose for it.
struct Linear {
  size_t index = 0;  // in Description::linears
  const LinearKernel* kernel = nullptr;
  const Kernel<Quantize>* quantize = nullptr;  // null: the kernel takes float32
  QuantSpec input;                             // what `quantize` makes
  std::optional<float>
      static_scale;  // of the input, host copy: equal ones share one quantised input
  PackedWeight weight;
};

// Norm weights are float32 in device memory; null where the architecture has no norm (LayerNorms).
struct LayerWeights {
  const float* before_attention = nullptr;
  const float* after_attention = nullptr;
  const float* before_mlp = nullptr;
  const float* after_mlp = nullptr;
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
  Linear q, k, v, o, gate, up, down;
};

// Everything forward() reads. The checkpoint it was loaded from must outlive it when the device
// reads host memory.
struct Model {
  ModelConfig config;
  ModelPlan plan;
  const void* embedding = nullptr;  // [vocab of this rank, hidden] of plan.request.embedding
  int64_t embedding_first = 0;      // first token id of this rank's part
  const float* final_norm = nullptr;
  std::vector<LayerWeights> layers;
  Linear head;
  std::vector<Buffer> storage;  // norms, and the embedding if copied and not tied
};

// Executes a plan. Every rank takes its own share of each record. Throws the plan's failures if it
// has any.
std::shared_ptr<const Model> load(const Checkpoint& checkpoint, ModelConfig config,
                                  const Description& description,
                                  std::span<const LinearRecord> records, ModelPlan plan,
                                  Device& device);

// This rank's part of a layer's record.
QuantView rank_share(const QuantView& whole, Parallel parallel, int rank, int ranks);

}  // namespace octet
