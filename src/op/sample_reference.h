#pragma once
// What the operations of op/sample.h have to give for one row of logits: the order of tokens,
// log-probabilities, and the tokens that may be drawn.
#include <cstdint>
#include <span>
#include <vector>

#include "op/expected.h"
#include "op/sample.h"

namespace octet {

// The ids of a row, largest logit first, of equal ones the lower id. Requires that none is NaN.
std::vector<int32_t> ranked_tokens(std::span<const float> logits);

// log(sum(exp(logits))) in double. Requires finite logits.
double log_sum_exp(std::span<const float> logits);

// The log-probability of a logit whose row has this log_sum_exp().
Expected logprob_reference(float logit, double log_sum_exp);

// The tokens that a right kernel may draw, best first: one, but where the random number or a filter
// is nearer to an edge between tokens than float32 weights can tell. `history` is what the ranges
// of Sample point into. Requires finite logits.
std::vector<int32_t> sample_reference(std::span<const float> logits, const SampleParams& params,
                                      std::span<const int32_t> history);

}  // namespace octet
