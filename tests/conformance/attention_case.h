#pragma once
// Problems for attention kernels: a paged cache with shuffled blocks, spans of several sequences,
// and the result in double precision with the size of every error a float32 kernel may make.
#include <cstdint>
#include <string>
#include <vector>

#include "op/attention.h"

namespace octet::conformance {

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
};

// Every case that attention kernels are proven on.
std::vector<AttentionCase> attention_cases();

class AttentionData {
 public:
  AttentionData(const AttentionCase& c, uint64_t seed);

  Attention::Problem problem() const;
  // Arguments without out and scratch.
  const Attention::Args& args() const { return args_; }
  int64_t rows() const { return args_.rows; }

  // One output element and what bounds its error.
  struct Expected {
    double value = 0;
    double probable = 0;  // the probabilistic bound
    double worst = 0;     // the bound that is never exceeded
  };
  // [rows, heads * head_dim]
  std::vector<Expected> expected() const;

  // The same sequence's rows [first, first + count) of span `span` as a batch of its own.
  Attention::Args part(size_t span, int32_t first, int32_t count,
                       std::vector<SeqSpan>& storage) const;

 private:
  void expect(const SeqSpan& span, int64_t row, int64_t head, Expected* out) const;

  AttentionCase case_;
  Attention::Args args_;
  std::vector<float> q_;
  std::vector<std::byte> k_, v_;
  std::vector<SeqSpan> spans_;
  std::vector<int32_t> tables_;
};

}  // namespace octet::conformance
