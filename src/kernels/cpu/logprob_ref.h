#pragma once
// log(sum(exp(logits))) in double, for the reference kernels.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/sample_order.h"

namespace octet::cpu {

// NaN when a logit is NaN or +infinity, or when all are -infinity.
inline double log_sum_exp(const float* logits, int64_t vocab) {
  const double largest = logits[best_token(logits, vocab)];
  double sum = 0;
  for (int64_t i = 0; i < vocab; ++i) sum += std::exp(double{logits[i]} - largest);
  return largest + std::log(sum);
}

}  // namespace octet::cpu
