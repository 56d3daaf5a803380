#pragma once
// What Attention has to give for one row and head, in double precision, and how far a float32
// kernel may be from it.
#include <cstdint>
#include <vector>

#include "op/attention.h"

namespace octet {

// One output element. Both bounds count the rounding of the result itself.
struct AttentionExpected {
  double value = 0;
  double probable = 0;  // the probabilistic bound
  double worst = 0;     // the bound that is never exceeded
};

// The [head_dim] outputs of a row of `span` and a head. The pointers of `args` are host memory; its
// out and scratch are not used.
std::vector<AttentionExpected> attention_reference(const Attention::Args& args, const SeqSpan& span,
                                                   int64_t row, int64_t head);

}  // namespace octet
