#pragma once
// Attention of one tile over the tokens of one KV split, with AVX2.
//
// Cost per (pair, token): head_dim multiply-adds for the logit and as many for the value, at 8 a
// fused instruction; K and V are converted once per tile. Order of sums, which no batch, tile or
// thread changes: a logit is the tree sum of 8 lanes over head_dim; weights add up in 8 lanes by
// token modulo 8 and then as a tree; values add up token by token.
#include "kernels/cpu/attention_run.h"
#include "kernels/cpu/vector_math_avx2.h"

OCTET_ISA_BEGIN("avx2,fma,f16c")
namespace octet::cpu {

// What a thread needs for one tile; about 100 KiB.
struct TileBufferAvx2 {
  static constexpr int64_t kStrip = 16;  // tokens converted at a time: 8 KiB of K at head_dim 128

  alignas(64) float q[kTilePairs * kTileMaxHeadDim];
  alignas(64) float strip[kStrip * kTileMaxHeadDim];
  alignas(64) float logits[kTilePairs * kKvSplit];  // then weights
};

// Eight sums, one of each vector: lane i is the tree sum of a[i].
OCTET_ALWAYS_INLINE __m256 sum_each_avx2(const __m256 (&a)[8]) {
  const __m256 low = _mm256_hadd_ps(_mm256_hadd_ps(a[0], a[1]), _mm256_hadd_ps(a[2], a[3]));
  const __m256 high = _mm256_hadd_ps(_mm256_hadd_ps(a[4], a[5]), _mm256_hadd_ps(a[6], a[7]));
  return _mm256_add_ps(_mm256_permute2f128_ps(low, high, 0x20),
                       _mm256_permute2f128_ps(low, high, 0x31));
}

// Logits of one query and eight converted keys, `dim` (a multiple of 8) apart.
OCTET_ALWAYS_INLINE __m256 dot8_avx2(const float* q, const float* keys, int64_t dim) {
  __m256 sums[8];
  OCTET_UNROLL
  for (int t = 0; t < 8; ++t) sums[t] = _mm256_setzero_ps();
  for (int64_t d = 0; d < dim; d += 8) {
    const __m256 part = _mm256_load_ps(q + d);
    OCTET_UNROLL
    for (int t = 0; t < 8; ++t) {
      sums[t] = _mm256_fmadd_ps(part, _mm256_load_ps(keys + t * dim + d), sums[t]);
    }
  }
  return sum_each_avx2(sums);
}

// Tokens [tokens.begin, tokens.end) of K or V as rows of job.dim floats padded with zeros.
template <DType kType>
OCTET_ALWAYS_INLINE void convert_avx2(const TileJob& job, const void* cache, TokenRange tokens,
                                      float* out) {
  const int64_t head_dim = job.args.head_dim;
  const int64_t whole = head_dim / 8 * 8;
  for (int64_t token = tokens.begin; token < tokens.end; ++token, out += job.dim) {
    const auto* src = static_cast<const KvElement<kType>*>(cache) + job.cache_offset(token);
    for (int64_t d = 0; d < whole; d += 8) {
      _mm256_store_ps(out + d, load_kv_avx2<kType>(src + d));
    }
    if (whole < head_dim) {
      _mm256_store_ps(out + whole, load_kv_tail_avx2<kType>(src + whole, head_dim - whole));
    }
    for (int64_t d = (head_dim + 7) / 8 * 8; d < job.dim; d += 8) {
      _mm256_store_ps(out + d, _mm256_setzero_ps());
    }
  }
}

// Logits of every pair for `tokens` of one split, at logits[pair * kKvSplit + token - split.begin].
template <DType kType>
OCTET_ALWAYS_INLINE void logits_avx2(const TileJob& job, TokenRange split, TokenRange tokens,
                                     TileBufferAvx2& buffer) {
  constexpr int64_t kStrip = TileBufferAvx2::kStrip;
  // Strips begin at multiples of kStrip, whatever the window: logits stay inside the split's row.
  for (int64_t begin = tokens.begin / kStrip * kStrip; begin < tokens.end; begin += kStrip) {
    const TokenRange strip = intersect(tokens, {begin, begin + kStrip});
    convert_avx2<kType>(job, job.args.k_cache, strip,
                        buffer.strip + (strip.begin - begin) * job.dim);
    for (int64_t p = 0; p < job.tile.count; ++p) {
      const TokenRange seen = intersect(strip, job.sees(p));
      float* out = buffer.logits + p * kKvSplit + begin - split.begin;
      for (int64_t t = (seen.begin - begin) / 8 * 8; t < seen.end - begin; t += 8) {
        _mm256_store_ps(out + t,
                        dot8_avx2(buffer.q + p * job.dim, buffer.strip + t * job.dim, job.dim));
      }
    }
  }
}

// Turns one pair's logits of the tokens [seen.begin, seen.end) of a split (counted from its begin)
// into weights.
OCTET_ALWAYS_INLINE PartialHead weigh_avx2(float* logits, TokenRange seen, float scale) {
  const __m256 never = _mm256_set1_ps(-__builtin_inff());
  const __m256 scales = _mm256_set1_ps(scale);
  const int64_t first = seen.begin / 8 * 8;
  __m256 largest = never;
  for (int64_t t = first; t < seen.end; t += 8) {
    // Lanes of tokens that the row does not see get weight exp(-infinity) = 0.
    const __m256i outside =
        _mm256_or_si256(lanes_avx2(seen.begin - t),
                        _mm256_andnot_si256(lanes_avx2(seen.end - t), _mm256_set1_epi32(-1)));
    const __m256 scaled = _mm256_blendv_ps(_mm256_mul_ps(_mm256_load_ps(logits + t), scales), never,
                                           _mm256_castsi256_ps(outside));
    _mm256_store_ps(logits + t, scaled);
    largest = _mm256_max_ps(scaled, largest);
  }
  PartialHead head;
  head.largest = max_avx2(largest);
  const __m256 shift = _mm256_set1_ps(head.largest);
  __m256 sum = _mm256_setzero_ps();
  for (int64_t t = first; t < seen.end; t += 8) {
    const __m256 weight = exp_avx2(_mm256_sub_ps(_mm256_load_ps(logits + t), shift));
    _mm256_store_ps(logits + t, weight);
    sum = _mm256_add_ps(sum, weight);
  }
  head.sum = sum_avx2(sum);
  return head;
}

// out[0, 8 * kVectors) += weights[t] * values[t][...] for every token, in order.
template <int kVectors>
OCTET_ALWAYS_INLINE void add_values_avx2(const float* weights, int64_t tokens, const float* values,
                                         int64_t dim, float* out) {
  __m256 sums[kVectors];
  OCTET_UNROLL
  for (int i = 0; i < kVectors; ++i) sums[i] = _mm256_loadu_ps(out + 8 * i);
  for (int64_t t = 0; t < tokens; ++t) {
    const __m256 weight = _mm256_broadcast_ss(weights + t);
    OCTET_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      sums[i] = _mm256_fmadd_ps(weight, _mm256_load_ps(values + t * dim + 8 * i), sums[i]);
    }
  }
  OCTET_UNROLL
  for (int i = 0; i < kVectors; ++i) _mm256_storeu_ps(out + 8 * i, sums[i]);
}

// The weighted sum of the values of `tokens`, added to each pair's out[pair].
template <DType kType>
OCTET_ALWAYS_INLINE void values_avx2(const TileJob& job, TokenRange split, TokenRange tokens,
                                     TileBufferAvx2& buffer, float* const* out) {
  constexpr int64_t kStrip = TileBufferAvx2::kStrip;
  for (int64_t begin = tokens.begin; begin < tokens.end; begin += kStrip) {
    const TokenRange strip = intersect(tokens, {begin, begin + kStrip});
    convert_avx2<kType>(job, job.args.v_cache, strip, buffer.strip);
    for (int64_t p = 0; p < job.tile.count; ++p) {
      // Only tokens that the row sees: 0 times a foreign value that is not finite would be NaN.
      const TokenRange seen = intersect(strip, job.sees(p));
      if (seen.empty()) continue;
      const float* weights = buffer.logits + p * kKvSplit + seen.begin - split.begin;
      const float* values = buffer.strip + (seen.begin - strip.begin) * job.dim;
      const int64_t count = seen.end - seen.begin;
      int64_t d = 0;
      for (; d + 64 <= job.dim; d += 64) {
        add_values_avx2<8>(weights, count, values + d, job.dim, out[p] + d);
      }
      for (; d < job.dim; d += 16) {
        add_values_avx2<2>(weights, count, values + d, job.dim, out[p] + d);
      }
    }
  }
}

// The vector code of attention_run.h.
struct TileAvx2 {
  using Buffer = TileBufferAvx2;

  template <DType kType>
  static void attend_split(const TileJob& job, int64_t split, Buffer& buffer,
                           PartialHead* const* heads, float* const* values) {
    const TokenRange all = split_tokens(split);
    const TokenRange tokens = intersect(all, job.sees());
    if (tokens.empty()) return;
    logits_avx2<kType>(job, all, tokens, buffer);
    for (int64_t p = 0; p < job.tile.count; ++p) {
      TokenRange seen = intersect(all, job.sees(p));
      if (seen.empty()) continue;
      seen = {seen.begin - all.begin, seen.end - all.begin};
      *heads[p] = weigh_avx2(buffer.logits + p * kKvSplit, seen, job.args.scale * job.args.k_scale);
      std::fill(values[p], values[p] + job.dim, 0.0F);
    }
    values_avx2<kType>(job, all, tokens, buffer, values);
  }

  static void merge(PartialHead& head, float* values, const PartialHead& next,
                    const float* next_values, int64_t dim) {
    const float largest = head.largest > next.largest ? head.largest : next.largest;
    const __m256 own = exp_avx2(_mm256_set1_ps(head.largest - largest));
    const __m256 other = exp_avx2(_mm256_set1_ps(next.largest - largest));
    head.sum = head.sum * _mm256_cvtss_f32(own) + next.sum * _mm256_cvtss_f32(other);
    head.largest = largest;
    for (int64_t d = 0; d < dim; d += 8) {
      const __m256 add = _mm256_mul_ps(_mm256_loadu_ps(next_values + d), other);
      _mm256_storeu_ps(values + d, _mm256_fmadd_ps(_mm256_loadu_ps(values + d), own, add));
    }
  }

  static void finish(const PartialHead& head, const float* values, float v_scale, int64_t head_dim,
                     float* out) {
    const __m256 factor = _mm256_set1_ps(v_scale / head.sum);
    for (int64_t d = 0; d < head_dim; d += 8) {
      store_lanes_avx2(out + d, _mm256_mul_ps(_mm256_loadu_ps(values + d), factor), head_dim - d);
    }
  }
};

}  // namespace octet::cpu
OCTET_ISA_END
