#pragma once
// A checkpoint in bf16, f16 or f32 to FP8 in the compressed-tensors format.
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "io/checkpoint.h"
#include "quantize/form.h"

namespace octet {

struct QuantizeJob {
  const Checkpoint* input = nullptr;
  std::filesystem::path output;  // a folder that does not exist yet, or an empty one
  const QuantForm* form = nullptr;
  std::vector<float>
      input_amax;  // largest |input| of each linear layer in model order; calibrated forms only
};

struct QuantizeProgress {
  uint64_t bytes_done = 0;
  uint64_t bytes_total = 0;  // of the input
};

// The result of a job, for a person.
struct QuantizeSummary {
  int64_t quantised = 0;  // linear layers
  int64_t copied = 0;     // tensors as they were
  uint64_t bytes_in = 0, bytes_out = 0;
};

// Writes the output folder: one file per input shard, config.json with its quantization_config, and
// every other small file of the model (tokenizer, template, generation config) as it is. The folder
// appears whole or not at all. Throws BadInput for a checkpoint that is quantised already or of an
// unknown architecture, Environment when the disk is full.
QuantizeSummary quantize(const QuantizeJob& job, ThreadPool& pool,
                         const std::function<void(QuantizeProgress)>& progress);

}  // namespace octet
