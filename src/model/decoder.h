#pragma once
// The forward pass: one decoder graph for every architecture, made of operations on a stream.
#include <memory>

#include "dist/communicator.h"
#include "kv/block_pool.h"
#include "model/batch.h"
#include "model/model.h"

namespace octet {

// Runs steps of one model over one KV cache. Owns the workspace. Thread: one caller at a time.
class Decoder {
 public:
  // The model, device, communicator and cache must outlive the decoder.
  Decoder(std::shared_ptr<const Model> model, KvCache& cache, Communicator& communicator,
          Device& device);
  ~Decoder();
  Decoder(Decoder&&) = delete;

  // Largest number of rows of one batch.
  int64_t max_rows() const;

  // Computes a batch and waits for its result. Tensors are touched only through operations on the
  // stream: inputs go up first, the result record comes down last (logits that are kept, before).
  // Requires 1 <= rows <= max_rows().
  StepResult forward(const Batch& batch);

  // From now on keeps the largest magnitude of every linear layer's input, as it comes before
  // rounding or quantisation.
  void watch_inputs();
  // The largest magnitudes since watch_inputs(), in the order of Description::linears; 0 for a
  // layer that was not run.
  std::vector<float> input_amax();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace octet
