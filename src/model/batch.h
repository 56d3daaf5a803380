#pragma once
// One step of work for a model, and what comes back: plain host values.
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "op/attention.h"
#include "op/sample.h"

namespace octet {

// New tokens of one or more sequences. Rows of a sequence are consecutive; spans say which.
struct Batch {
  std::vector<int32_t> tokens;        // [rows]
  std::vector<int32_t> positions;     // [rows]
  std::vector<int64_t> slots;         // [rows] where each token's key and value go
  std::vector<SeqSpan> spans;         // [sequences]
  std::vector<int32_t> block_tables;  // [sequences, table_stride]
  int64_t table_stride = 0;
  // [sequences] or empty: tokens that each sequence will have when it ends, for rotary tables that
  // depend on it. Empty: those it has after this step.
  std::vector<int64_t> lengths;

  std::vector<int32_t> logit_rows;   // rows whose logits are wanted, ascending
  std::vector<SampleParams> sample;  // [logit_rows], or empty: nothing is sampled
  std::vector<int32_t> history;      // tokens that SampleParams ranges point into
  // [logit_rows] or empty: tokens whose log-probability is wanted; any id where none is.
  std::vector<int32_t> targets;
  int64_t top_logprobs = 0;  // best tokens to report per logit row
  bool keep_logits = false;  // bring back all logits, for comparing models

  int64_t rows() const { return static_cast<int64_t>(tokens.size()); }
};

// The result record of a step: all that comes back from the device. Its logits, when they are kept,
// come as they are made, the rest in one transfer at the end.
struct StepResult {
  static constexpr int32_t kFinite = std::numeric_limits<int32_t>::max();

  std::vector<int32_t> ids;  // [logit_rows] sampled; empty without sampling
  std::vector<float>
      logprobs;  // [logit_rows] of the sampled ids, under the model's own distribution
  std::vector<float> target_logprobs;  // [logit_rows] of the targets, or empty
  std::vector<int32_t> top_ids;        // [logit_rows, top_logprobs], best first
  std::vector<float> top_logprobs;
  std::vector<float> logits;  // [logit_rows, vocab] with Batch::keep_logits, else empty
  std::vector<int32_t>
      not_finite;  // [rows] kFinite, or the first stage whose values were not finite (stage_name)
};

// Stage numbers of StepResult::not_finite for a model of `layers` layers, as a person reads them:
// 2 i is the input of layer i, 2 i + 1 the attention of layer i, 2 layers + 1 the head.
std::string stage_name(int32_t stage, int64_t layers);

}  // namespace octet
