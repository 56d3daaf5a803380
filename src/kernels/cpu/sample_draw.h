#pragma once
// How one row is drawn, shared by the sampling kernels of the CPU; they differ in how they find the
// best token and compute weights. Baseline code: included outside ISA regions.
#include "kernels/cpu/sample_buckets.h"
#include "op/sample.h"

namespace octet::cpu {

// logits [vocab] are changed for the tokens seen, each once however often it was seen.
inline void penalise(const Sample::Args& args, int64_t row, float* logits) {
  const SampleParams& params = args.params[row];
  const float* source = args.logits + row * args.vocab;
  for (int64_t i = params.history_begin; i < params.history_end; ++i) {
    const int64_t id = args.history[i];
    if (id < 0 || id >= args.vocab) continue;
    const float logit = source[id];
    logits[id] = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
  }
}

// The tokens that may be drawn, in order: every bucket before `bucket_`, and the first `within_`
// tokens of that one. Each filter moves the end forward.
class Candidates {
 public:
  explicit Candidates(TokenBuckets& buckets) : buckets_(buckets), within_(buckets.count(bucket_)) {
    for (int b = 0; b < TokenBuckets::kCount; ++b) mass_ += buckets.mass(b);
  }

  // Keeps the k best.
  void keep_best(int64_t k) {
    double before = 0;
    for (int b = 0; b <= bucket_; ++b) {
      if (k <= size(b)) return cut(b, k, before + sum(b, k));
      k -= size(b);
      before += mass(b);
    }
  }

  // Keeps the smallest set of best tokens whose share of the mass reaches `share`; at least one.
  void keep_share(double share) {
    const double enough = share * mass_;
    double before = 0;
    for (int b = 0; b <= bucket_; ++b) {
      if (size(b) > 0 && before + mass(b) >= enough) {
        const int32_t* ids = buckets_.tokens(b);
        int64_t n = 0;
        do {
          before += buckets_.weight(ids[n++]);
        } while (before < enough && n < size(b));
        return cut(b, n, before);
      }
      before += mass(b);
    }
  }

  // Keeps tokens of at least `least` times the best token's weight; at least one.
  void keep_above(double least) {
    double before = 0;
    bool any = false;
    for (int b = 0; b <= bucket_; ++b) {
      // Weights of the bucket are above exp(-(b + 1) / 8), but for rounding.
      const double lowest = std::exp(-(b + 1) / double{TokenBuckets::kPerUnit});
      const bool whole = b < TokenBuckets::kCount - 1 && lowest > least * 1.001;
      for (int64_t i = 0; !whole && i < size(b); ++i) {
        if (any && buckets_.weight(buckets_.tokens(b)[i]) < least) {
          return cut(b, i, before + sum(b, i));
        }
        any = true;
      }
      any = any || size(b) > 0;
      before += mass(b);
    }
  }

  // The token at `place` in [0, 1) of the cumulative distribution, best token first; `otherwise`
  // when no token has any weight.
  int32_t at(double place, int32_t otherwise) {
    const double target = place * mass_;
    double before = 0;
    int last = -1;
    for (int b = 0; b <= bucket_; ++b) {
      const double m = mass(b);
      if (m <= 0) continue;
      last = b;
      if (before + m > target) break;
      before += m;
    }
    if (last < 0) return otherwise;
    const int32_t* ids = buckets_.tokens(last);
    int32_t chosen = ids[0];
    for (int64_t i = 0; i < size(last); ++i) {
      const double weight = buckets_.weight(ids[i]);
      if (weight == 0) break;
      chosen = ids[i];
      before += weight;
      if (before > target) break;
    }
    return chosen;
  }

 private:
  int64_t size(int bucket) const { return bucket == bucket_ ? within_ : buckets_.count(bucket); }
  double mass(int bucket) { return sum(bucket, size(bucket)); }

  // The weights of a bucket's first n tokens.
  double sum(int bucket, int64_t n) {
    if (n == buckets_.count(bucket)) return buckets_.mass(bucket);
    const int32_t* ids = buckets_.tokens(bucket);
    double total = 0;
    for (int64_t i = 0; i < n; ++i) total += buckets_.weight(ids[i]);
    return total;
  }

  void cut(int bucket, int64_t within, double mass) {
    bucket_ = bucket;
    within_ = within;
    mass_ = mass;
  }

  TokenBuckets& buckets_;
  int bucket_ = TokenBuckets::kCount - 1;
  int64_t within_;
  double mass_ = 0;
};

// One token of the distribution of `logits` (penalised) whose best token is `best`. `ids` [vocab]
// is scratch, `weigh` as TokenBuckets takes it.
template <class Weigh>
int32_t draw(const SampleParams& params, const float* logits, int64_t vocab, int32_t best,
             int32_t* ids, Weigh weigh) {
  if (params.temperature == 0) return best;
  TokenBuckets buckets(logits, vocab, logits[best], params.temperature, ids, weigh);
  Candidates candidates(buckets);
  if (params.top_k > 0 && params.top_k < vocab) candidates.keep_best(params.top_k);
  if (params.top_p < 1) candidates.keep_share(double{params.top_p});
  if (params.min_p > 0) candidates.keep_above(double{params.min_p});
  // 53 bits make a uniform number in [0, 1).
  return candidates.at(static_cast<double>(params.random >> 11) * 0x1p-53, best);
}

}  // namespace octet::cpu
