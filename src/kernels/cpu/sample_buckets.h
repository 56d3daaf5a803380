#pragma once
// The tokens of one row in buckets of about equal logits, best bucket first: a draw and its filters
// look at bucket sums, and only the few buckets that a cut goes through are ever sorted. Costs two
// or three passes over the vocabulary, whatever the distribution. Baseline code: included outside
// ISA regions.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/sample_order.h"

namespace octet::cpu {

// The weight of a token before normalisation: exp((logit - largest) / temperature). The best tokens
// have 1 even when their logit is infinite; NaN has 0.
inline double sample_weight(float logit, float largest, float temperature) {
  if (logit == largest) return 1;
  const double weight = std::exp((double{logit} - double{largest}) / double{temperature});
  return std::isnan(weight) ? 0 : weight;
}

class TokenBuckets {
 public:
  // A bucket spans a factor of exp(1/8) in weight; the last holds all below exp(-32) = 1e-14.
  static constexpr int kCount = 256;
  static constexpr float kPerUnit = 8;

  // `ids` [vocab] is for the class to use. `weigh(begin, end, weights)` writes the sample_weight()
  // of tokens [begin, end), at most kChunk of them.
  static constexpr int64_t kChunk = 256;
  template <class Weigh>
  TokenBuckets(const float* logits, int64_t vocab, float largest, float temperature, int32_t* ids,
               Weigh weigh)
      : better_{logits},
        vocab_(vocab),
        largest_(largest),
        temperature_(temperature),
        steps_(kPerUnit / temperature),
        ids_(ids) {
    // Four sets of sums by id modulo 4: additions to one bucket wait for each other.
    double sums[4][kCount] = {};
    float weights[kChunk];
    for (int64_t begin = 0; begin < vocab; begin += kChunk) {
      const int64_t end = std::min(begin + kChunk, vocab);
      weigh(begin, end, weights);
      for (int64_t i = begin; i < end; ++i) {
        const int b = of(logits[i]);
        sums[i % 4][b] += double{weights[i - begin]};
        ++count_[b];
      }
    }
    for (int b = 0; b < kCount; ++b) {
      mass_[b] = (sums[0][b] + sums[1][b]) + (sums[2][b] + sums[3][b]);
    }
  }

  int64_t count(int bucket) const { return count_[bucket]; }
  // The sum of the weights of a bucket's tokens.
  double mass(int bucket) const { return mass_[bucket]; }
  double weight(int32_t id) const {
    return sample_weight(better_.logits[id], largest_, temperature_);
  }

  // The tokens of a bucket, best first. Valid until another bucket is asked for.
  const int32_t* tokens(int bucket) {
    if (listed_ != bucket) {
      int64_t n = 0;
      for (int64_t i = 0; i < vocab_; ++i) {
        if (of(better_.logits[i]) == bucket) ids_[n++] = static_cast<int32_t>(i);
      }
      std::sort(ids_, ids_ + n, better_);
      listed_ = bucket;
    }
    return ids_;
  }

 private:
  // Rounding keeps the order of logits, so no token is in a later bucket than a worse one.
  int of(float logit) const {
    const float steps = (largest_ - logit) * steps_;
    if (logit == largest_) return 0;
    return steps < kCount - 1 ? static_cast<int>(steps) : kCount - 1;
  }

  Better better_;
  int64_t vocab_;
  float largest_;
  float temperature_;
  float steps_;
  int32_t* ids_;
  int listed_ = -1;
  double mass_[kCount] = {};
  int64_t count_[kCount] = {};
};

}  // namespace octet::cpu
