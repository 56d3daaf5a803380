#pragma once
// Batches to run an attention kernel on: a paged cache with shuffled blocks, spans of several
// sequences, random values. Shared by the conformance suite and `octet verify`.
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "op/attention_reference.h"

namespace octet {

// One batch: each span has its own sequence.
struct AttentionCase {
  std::string name;
  int64_t heads = 1, kv_heads = 1, head_dim = 16;
  std::vector<std::pair<int32_t, int32_t>> spans;  // (context, rows)
  int64_t block_size = 16;
  int64_t window = 0;
  DType kv_dtype = DType::F32;
  float k_scale = 1, v_scale = 1;
  double spread = 1;      // of the logits: 0 makes all weights equal, large makes one win
  bool one_sign = false;  // q, k and v positive: the largest rounding errors
  int64_t q_gap = 24;     // elements after each row of q, which may be columns of a fused qkv
};

// The batch of a case in host memory. What no sequence wrote is NaN and must not be read.
class AttentionData {
 public:
  AttentionData(const AttentionCase& c, uint64_t seed);
  AttentionData(AttentionData&&) = delete;

  Attention::Problem problem() const;
  // Arguments without out and scratch.
  const Attention::Args& args() const { return args_; }
  int64_t rows() const { return args_.rows; }
  // The arrays that args() points into.
  std::span<const float> q() const { return q_; }
  std::span<const std::byte> k_cache() const { return k_; }
  std::span<const std::byte> v_cache() const { return v_; }
  std::span<const SeqSpan> spans() const { return spans_; }
  std::span<const int32_t> block_tables() const { return tables_; }

  // The exact outputs, [rows, heads * head_dim].
  std::vector<AttentionExpected> expected() const;

  // The same sequence's rows [first, first + count) of span `span` as a batch of its own.
  Attention::Args part(size_t span, int32_t first, int32_t count,
                       std::vector<SeqSpan>& storage) const;

 private:
  void place_spans(uint64_t seed);
  void fill(uint64_t seed);

  AttentionCase case_;
  Attention::Args args_;
  std::vector<float> q_;
  std::vector<std::byte> k_, v_;
  std::vector<SeqSpan> spans_;
  std::vector<int32_t> tables_;
};

}  // namespace octet
