#pragma once
// The order of tokens that every kernel of op/sample.h keeps: larger logit first, then lower id.
// Baseline code: included by kernels outside their ISA regions.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace octet::cpu {

// A logit as an order sees it: NaN is never the best.
inline float order_key(float logit) {
  return std::isnan(logit) ? -std::numeric_limits<float>::infinity() : logit;
}

// True when token a comes before token b.
struct Better {
  const float* logits;  // [vocab]
  bool operator()(int32_t a, int32_t b) const {
    const float x = order_key(logits[a]);
    const float y = order_key(logits[b]);
    return x > y || (x == y && a < b);
  }
};

// The id of the first of the largest logits.
inline int32_t best_token(const float* logits, int64_t vocab) {
  int32_t best = 0;
  for (int64_t i = 1; i < vocab; ++i) {
    if (order_key(logits[i]) > order_key(logits[best])) best = static_cast<int32_t>(i);
  }
  return best;
}

// Writes the k best of the `vocab` tokens, best first. ids[0, k) is a heap whose root is the worst
// kept; nothing is allocated. `skip(begin, end, bar)` returns an id of [begin, end] with no logit
// over `bar` before it: a place for vector code.
template <class Skip>
void best_tokens(const float* logits, int64_t vocab, int32_t* ids, int64_t k, Skip skip) {
  if (k <= 0) return;
  const Better better{logits};
  for (int64_t i = 0; i < k; ++i) ids[i] = static_cast<int32_t>(i);
  std::make_heap(ids, ids + k, better);
  for (int64_t i = skip(k, vocab, order_key(logits[ids[0]])); i < vocab;
       i = skip(i + 1, vocab, order_key(logits[ids[0]]))) {
    const auto id = static_cast<int32_t>(i);
    if (!better(id, ids[0])) continue;
    std::pop_heap(ids, ids + k, better);
    ids[k - 1] = id;
    std::push_heap(ids, ids + k, better);
  }
  std::sort_heap(ids, ids + k, better);
}

}  // namespace octet::cpu
