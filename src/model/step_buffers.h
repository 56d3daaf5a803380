#pragma once
// Device memory of a forward pass: the workspace that the plan sized, and one step's inputs and
// result.
#include <span>
#include <vector>

#include "device/device.h"
#include "model/batch.h"
#include "model/config.h"
#include "plan/workspace.h"

namespace octet {

// The buffers of WorkspaceSizes, allocated once. Pointers are device addresses.
class Workspace {
 public:
  Workspace(const WorkspaceSizes& sizes, Device& device);

  float *residual, *normed, *delta, *q, *k, *v, *attention, *gate, *up, *code_scales, *head_input,
      *logits, *sample_scratch;
  void *codes, *linear_scratch, *attention_scratch;

 private:
  std::vector<Buffer> buffers_;
};

// Inputs and result of one step. Each is one block of memory, so that a step is one upload and one
// download.
class StepBuffers {
 public:
  explicit StepBuffers(Device& device) : device_(device) {}

  // Lays out and uploads the inputs; marks every row as finite.
  void upload(const Batch& batch, const RopeConfig& rope, int64_t rotary_dim, Stream& stream);
  // The one transfer of a step.
  StepResult download(const Batch& batch, Stream& stream);

  const int32_t* tokens() const { return input<int32_t>(tokens_); }
  const int64_t* slots() const { return input<int64_t>(slots_); }
  const SeqSpan* spans() const { return input<SeqSpan>(spans_); }
  const int32_t* block_tables() const { return input<int32_t>(block_tables_); }
  const int32_t* angle_rows() const { return input<int32_t>(angle_rows_); }
  const float* angles() const { return input<float>(angles_); }
  const int32_t* logit_rows() const { return input<int32_t>(logit_rows_); }
  const SampleParams* sample() const { return input<SampleParams>(sample_); }
  const int32_t* history() const { return input<int32_t>(history_); }
  const int32_t* targets() const { return input<int32_t>(targets_); }

  int32_t* not_finite() const { return result<int32_t>(not_finite_); }
  int32_t* logits_not_finite() const { return result<int32_t>(logits_not_finite_); }
  int32_t* ids() const { return result<int32_t>(ids_); }
  float* logprobs() const { return result<float>(logprobs_); }
  float* target_logprobs() const { return result<float>(target_logprobs_); }
  int32_t* top_ids() const { return result<int32_t>(top_ids_); }
  float* top_logprobs() const { return result<float>(top_logprobs_); }

 private:
  template <class T>
  T* input(size_t offset) const {
    return reinterpret_cast<T*>(inputs_.as<std::byte>() + offset);
  }
  template <class T>
  T* result(size_t offset) const {
    return reinterpret_cast<T*>(results_.as<std::byte>() + offset);
  }
  // Appends an array to the host image of the inputs and returns its offset.
  template <class T>
  size_t append(std::span<const T> values);
  void lay_out_result(const Batch& batch);

  Device& device_;
  Buffer inputs_, results_;
  std::vector<std::byte> image_;   // host image of the inputs
  std::vector<std::byte> record_;  // host image of the result
  size_t tokens_ = 0, slots_ = 0, spans_ = 0, block_tables_ = 0, angle_rows_ = 0, angles_ = 0,
         logit_rows_ = 0, sample_ = 0, history_ = 0, targets_ = 0;
  size_t not_finite_ = 0, logits_not_finite_ = 0, ids_ = 0, logprobs_ = 0, target_logprobs_ = 0,
         top_ids_ = 0, top_logprobs_ = 0;
};

}  // namespace octet
