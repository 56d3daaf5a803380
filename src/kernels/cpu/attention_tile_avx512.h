#pragma once
// Attention of one tile over the tokens of one KV split, with AVX-512.
//
// Cost per (pair, token): head_dim multiply-adds for the logit and as many for the value, at 16 a
// fused instruction; K and V are converted once per tile. Order of sums, which no batch, tile or
// thread changes: a logit is the tree sum of 16 lanes over head_dim; weights add up in 16 lanes by
// token modulo 16 and then as a tree; values add up in two chains, of even and of odd tokens,
// within strips of 16 tokens that begin at multiples of 16, and strip by strip.
#include "kernels/cpu/attention_run.h"
#include "kernels/cpu/vector_math_avx512.h"

OCTET_ISA_BEGIN("avx512f,avx512bw,avx512vl,avx512dq")
namespace octet::cpu {

// What a thread needs for one tile; about 100 KiB.
struct TileBufferAvx512 {
  static constexpr int64_t kStrip = 16;  // tokens converted at a time: 8 KiB of K at head_dim 128

  alignas(64) float q[kTilePairs * kTileMaxHeadDim];
  alignas(64) float strip[kStrip * kTileMaxHeadDim];
  alignas(64) float logits[kTilePairs * kKvSplit];  // then weights
};

// Pairwise sums of the quarters of two vectors: a's in the lower half, b's in the upper.
OCTET_ALWAYS_INLINE __m512 fold_quarters_avx512(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
}

// Sixteen sums, one of each vector: lane i is the tree sum of a[i].
OCTET_ALWAYS_INLINE __m512 sum_each_avx512(const __m512 (&a)[16]) {
  // Halves of the lanes, twice: quarter q of c[i] holds four partial sums of a[4 q + i].
  __m512 c[4];
  OCTET_UNROLL
  for (int i = 0; i < 4; ++i) {
    const __m512 low = fold_quarters_avx512(a[i], a[4 + i]);
    const __m512 high = fold_quarters_avx512(a[8 + i], a[12 + i]);
    c[i] =
        _mm512_add_ps(_mm512_shuffle_f32x4(low, high, 0x88), _mm512_shuffle_f32x4(low, high, 0xDD));
  }
  // Transposing 4 x 4 in each quarter adds them up.
  const __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(c[0], c[1]), _mm512_unpackhi_ps(c[0], c[1]));
  const __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(c[2], c[3]), _mm512_unpackhi_ps(c[2], c[3]));
  const __m512 low = _mm512_shuffle_ps(ab, cd, 0x44);
  const __m512 high = _mm512_shuffle_ps(ab, cd, 0xEE);
  return _mm512_add_ps(low, high);
}

// Logits of one query and sixteen converted keys, `dim` (a multiple of 16) apart.
OCTET_ALWAYS_INLINE __m512 dot16_avx512(const float* q, const float* keys, int64_t dim) {
  __m512 sums[16];
  OCTET_UNROLL
  for (int t = 0; t < 16; ++t) sums[t] = _mm512_setzero_ps();
  for (int64_t d = 0; d < dim; d += 16) {
    const __m512 part = _mm512_load_ps(q + d);
    OCTET_UNROLL
    for (int t = 0; t < 16; ++t) {
      sums[t] = _mm512_fmadd_ps(part, _mm512_load_ps(keys + t * dim + d), sums[t]);
    }
  }
  return sum_each_avx512(sums);
}

// Tokens [tokens.begin, tokens.end) of K or V as rows of job.dim floats padded with zeros.
template <DType kType>
OCTET_ALWAYS_INLINE void convert_avx512(const TileJob& job, const void* cache, TokenRange tokens,
                                        float* out) {
  const int64_t head_dim = job.args.head_dim;
  const int64_t whole = head_dim / 16 * 16;
  for (int64_t token = tokens.begin; token < tokens.end; ++token, out += job.dim) {
    const auto* src = static_cast<const KvElement<kType>*>(cache) + job.cache_offset(token);
    for (int64_t d = 0; d < whole; d += 16) {
      _mm512_store_ps(out + d, load_kv_avx512<kType>(src + d));
    }
    if (whole < head_dim) {
      _mm512_store_ps(out + whole, load_kv_tail_avx512<kType>(src + whole, head_dim - whole));
    }
  }
}

// Logits of every pair for `tokens` of one split, at logits[pair * kKvSplit + token - split.begin].
template <DType kType>
OCTET_ALWAYS_INLINE void logits_avx512(const TileJob& job, TokenRange split, TokenRange tokens,
                                       TileBufferAvx512& buffer) {
  constexpr int64_t kStrip = TileBufferAvx512::kStrip;
  // Strips begin at multiples of kStrip, whatever the window: logits stay inside the split's row.
  for (int64_t begin = tokens.begin / kStrip * kStrip; begin < tokens.end; begin += kStrip) {
    const TokenRange strip = intersect(tokens, {begin, begin + kStrip});
    convert_avx512<kType>(job, job.args.k_cache, strip,
                          buffer.strip + (strip.begin - begin) * job.dim);
    for (int64_t p = 0; p < job.tile.count; ++p) {
      if (intersect(strip, job.sees(p)).empty()) continue;
      _mm512_store_ps(buffer.logits + p * kKvSplit + begin - split.begin,
                      dot16_avx512(buffer.q + p * job.dim, buffer.strip, job.dim));
    }
  }
}

// Turns one pair's logits of the tokens [seen.begin, seen.end) of a split (counted from its begin)
// into weights.
OCTET_ALWAYS_INLINE PartialHead weigh_avx512(float* logits, TokenRange seen, float scale) {
  const __m512 never = _mm512_set1_ps(-__builtin_inff());
  const __m512 scales = _mm512_set1_ps(scale);
  const int64_t first = seen.begin / 16 * 16;
  __m512 largest = never;
  for (int64_t t = first; t < seen.end; t += 16) {
    // Lanes of tokens that the row does not see get weight exp(-infinity) = 0.
    const auto inside =
        static_cast<__mmask16>(lanes_avx512(seen.end - t) & ~lanes_avx512(seen.begin - t));
    const __m512 scaled =
        _mm512_mask_mov_ps(never, inside, _mm512_mul_ps(_mm512_load_ps(logits + t), scales));
    _mm512_store_ps(logits + t, scaled);
    largest = _mm512_max_ps(scaled, largest);
  }
  PartialHead head;
  head.largest = _mm512_reduce_max_ps(largest);
  const __m512 shift = _mm512_set1_ps(head.largest);
  __m512 sum = _mm512_setzero_ps();
  for (int64_t t = first; t < seen.end; t += 16) {
    const __m512 weight = exp_avx512(_mm512_sub_ps(_mm512_load_ps(logits + t), shift));
    _mm512_store_ps(logits + t, weight);
    sum = _mm512_add_ps(sum, weight);
  }
  head.sum = _mm512_reduce_add_ps(sum);
  return head;
}

// out[0, 16 * kVectors) += weights[t] * values[t][...] for the tokens [begin, end) of a strip.
template <int kVectors>
OCTET_ALWAYS_INLINE void add_values_avx512(const float* weights, TokenRange tokens,
                                           const float* values, int64_t dim, float* out) {
  __m512 even[kVectors];
  __m512 odd[kVectors];
  OCTET_UNROLL
  for (int i = 0; i < kVectors; ++i) even[i] = odd[i] = _mm512_setzero_ps();
  const auto add = [&](__m512(&sums)[kVectors], int64_t t) OCTET_LAMBDA_INLINE {
    const __m512 weight = _mm512_set1_ps(weights[t]);
    OCTET_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      sums[i] = _mm512_fmadd_ps(weight, _mm512_load_ps(values + t * dim + 16 * i), sums[i]);
    }
  };
  int64_t t = tokens.begin;
  if (t % 2 != 0) add(odd, t++);
  for (; t + 2 <= tokens.end; t += 2) {
    add(even, t);
    add(odd, t + 1);
  }
  if (t < tokens.end) add(even, t);
  OCTET_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    const __m512 strip = _mm512_add_ps(even[i], odd[i]);
    _mm512_storeu_ps(out + 16 * i, _mm512_add_ps(_mm512_loadu_ps(out + 16 * i), strip));
  }
}

// The weighted sum of the values of `tokens`, added to each pair's out[pair].
template <DType kType>
OCTET_ALWAYS_INLINE void values_avx512(const TileJob& job, TokenRange split, TokenRange tokens,
                                       TileBufferAvx512& buffer, float* const* out) {
  constexpr int64_t kStrip = TileBufferAvx512::kStrip;
  for (int64_t begin = tokens.begin / kStrip * kStrip; begin < tokens.end; begin += kStrip) {
    const TokenRange strip = intersect(tokens, {begin, begin + kStrip});
    convert_avx512<kType>(job, job.args.v_cache, strip,
                          buffer.strip + (strip.begin - begin) * job.dim);
    for (int64_t p = 0; p < job.tile.count; ++p) {
      // Only tokens that the row sees: 0 times a foreign value that is not finite would be NaN.
      const TokenRange seen = intersect(strip, job.sees(p));
      if (seen.empty()) continue;
      const TokenRange local = {seen.begin - begin, seen.end - begin};
      const float* weights = buffer.logits + p * kKvSplit + begin - split.begin;
      int64_t d = 0;
      for (; d + 64 <= job.dim; d += 64) {
        add_values_avx512<4>(weights, local, buffer.strip + d, job.dim, out[p] + d);
      }
      for (; d < job.dim; d += 16) {
        add_values_avx512<1>(weights, local, buffer.strip + d, job.dim, out[p] + d);
      }
    }
  }
}

// The vector code of attention_run.h.
struct TileAvx512 {
  using Buffer = TileBufferAvx512;

  template <DType kType>
  static void attend_split(const TileJob& job, int64_t split, Buffer& buffer,
                           PartialHead* const* heads, float* const* values) {
    const TokenRange all = split_tokens(split);
    const TokenRange tokens = intersect(all, job.sees());
    if (tokens.empty()) return;
    logits_avx512<kType>(job, all, tokens, buffer);
    for (int64_t p = 0; p < job.tile.count; ++p) {
      TokenRange seen = intersect(all, job.sees(p));
      if (seen.empty()) continue;
      seen = {seen.begin - all.begin, seen.end - all.begin};
      *heads[p] =
          weigh_avx512(buffer.logits + p * kKvSplit, seen, job.args.scale * job.args.k_scale);
      std::fill(values[p], values[p] + job.dim, 0.0F);
    }
    values_avx512<kType>(job, all, tokens, buffer, values);
  }

  static void merge(PartialHead& head, float* values, const PartialHead& next,
                    const float* next_values, int64_t dim) {
    const float largest = head.largest > next.largest ? head.largest : next.largest;
    const __m512 own = exp_avx512(_mm512_set1_ps(head.largest - largest));
    const __m512 other = exp_avx512(_mm512_set1_ps(next.largest - largest));
    head.sum = head.sum * _mm_cvtss_f32(_mm512_castps512_ps128(own)) +
               next.sum * _mm_cvtss_f32(_mm512_castps512_ps128(other));
    head.largest = largest;
    for (int64_t d = 0; d < dim; d += 16) {
      const __m512 add = _mm512_mul_ps(_mm512_loadu_ps(next_values + d), other);
      _mm512_storeu_ps(values + d, _mm512_fmadd_ps(_mm512_loadu_ps(values + d), own, add));
    }
  }

  static void finish(const PartialHead& head, const float* values, float v_scale, int64_t head_dim,
                     float* out) {
    const __m512 factor = _mm512_set1_ps(v_scale / head.sum);
    for (int64_t d = 0; d < head_dim; d += 16) {
      _mm512_mask_storeu_ps(out + d, lanes_avx512(head_dim - d),
                            _mm512_mul_ps(_mm512_loadu_ps(values + d), factor));
    }
  }
};

}  // namespace octet::cpu
OCTET_ISA_END
