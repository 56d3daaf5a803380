#pragma once
// Passes over a row of logits with AVX2: the best token, whether all are finite, the next logit
// over a bar, and sums of exponentials.
#include <limits>

#include "kernels/cpu/vector_math_avx2.h"

OCTET_ISA_BEGIN("avx2,fma,f16c")
namespace octet::cpu {

struct BestToken {
  int32_t id = 0;
  bool all_finite = true;
};

// A row's end as a whole vector: logits that are not there are -infinity, and change no maximum.
OCTET_ALWAYS_INLINE __m256 load_logits_avx2(const float* logits, int64_t count) {
  if (count >= 8) return _mm256_loadu_ps(logits);
  const __m256i lanes = lanes_avx2(count);
  return _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), _mm256_maskload_ps(logits, lanes),
                          _mm256_castsi256_ps(lanes));
}

// The first of the largest logits; NaN is never the best.
inline BestToken best_token_avx2(const float* logits, int64_t vocab) {
  const __m256i magnitude = _mm256_set1_epi32(0x7FFFFFFF);
  __m256 best = _mm256_set1_ps(-__builtin_inff());
  __m256i best_ids = _mm256_set1_epi32(std::numeric_limits<int32_t>::max());
  __m256i ids = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  __m256i largest_bits = _mm256_setzero_si256();
  for (int64_t i = 0; i < vocab; i += 8) {
    const __m256 v = load_logits_avx2(logits + i, vocab - i);
    const __m256 real = load_lanes_avx2(logits + i, vocab - i);
    largest_bits =
        _mm256_max_epi32(largest_bits, _mm256_and_si256(_mm256_castps_si256(real), magnitude));
    const __m256 better = _mm256_cmp_ps(v, best, _CMP_GT_OQ);
    best = _mm256_blendv_ps(best, v, better);
    best_ids = _mm256_blendv_epi8(best_ids, ids, _mm256_castps_si256(better));
    ids = _mm256_add_epi32(ids, _mm256_set1_epi32(8));
  }
  alignas(32) float values[8];
  alignas(32) int32_t places[8];
  _mm256_store_ps(values, best);
  _mm256_store_si256(reinterpret_cast<__m256i*>(places), best_ids);
  int lane = 0;
  for (int i = 1; i < 8; ++i) {
    const bool better =
        values[i] > values[lane] || (values[i] == values[lane] && places[i] < places[lane]);
    if (better) lane = i;
  }
  BestToken result;
  // Nothing above -infinity: the first token.
  result.id = places[lane] == std::numeric_limits<int32_t>::max() ? 0 : places[lane];
  result.all_finite = max_epi32_avx2(largest_bits) < 0x7F800000;
  return result;
}

// The first place in [begin, end) whose logit is over `bar`, or end.
OCTET_ALWAYS_INLINE int64_t next_over_avx2(const float* logits, int64_t begin, int64_t end,
                                           float bar) {
  const __m256 bars = _mm256_set1_ps(bar);
  for (int64_t i = begin; i < end; i += 8) {
    const __m256 over = _mm256_cmp_ps(load_logits_avx2(logits + i, end - i), bars, _CMP_GT_OQ);
    const int mask = _mm256_movemask_ps(over);
    if (mask != 0) return i + __builtin_ctz(static_cast<unsigned>(mask));
  }
  return end;
}

// The sum of exp(logit - largest), in four double sums and a tree.
inline double sum_exp_avx2(const float* logits, int64_t vocab, float largest) {
  const __m256 shift = _mm256_set1_ps(largest);
  __m256d sums = _mm256_setzero_pd();
  for (int64_t i = 0; i < vocab; i += 8) {
    sums =
        add_pd_avx2(sums, exp_avx2(_mm256_sub_ps(load_logits_avx2(logits + i, vocab - i), shift)));
  }
  return sum_pd_avx2(sums);
}

// sample_weight() of sample_buckets.h for `count` logits.
inline void sample_weights_avx2(const float* logits, int64_t count, float largest,
                                float temperature, float* weights) {
  const __m256 shift = _mm256_set1_ps(largest);
  const __m256 divisor = _mm256_set1_ps(temperature);
  for (int64_t i = 0; i < count; i += 8) {
    const __m256 v = load_lanes_avx2(logits + i, count - i);
    __m256 weight = exp_avx2(_mm256_div_ps(_mm256_sub_ps(v, shift), divisor));
    weight = _mm256_and_ps(weight, _mm256_cmp_ps(weight, weight, _CMP_ORD_Q));
    weight = _mm256_blendv_ps(weight, _mm256_set1_ps(1.0F), _mm256_cmp_ps(v, shift, _CMP_EQ_OQ));
    store_lanes_avx2(weights + i, weight, count - i);
  }
}

}  // namespace octet::cpu
OCTET_ISA_END
