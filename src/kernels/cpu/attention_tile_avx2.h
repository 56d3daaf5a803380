#pragma once
// Attention of one tile over the tokens of one KV split, with AVX2.
//
// Cost per (pair, token): head_dim multiply-adds for the logit and as many for the value, at 8 a
// fused instruction; K and V are converted once per tile. Order of sums, which no batch, tile or
// thread changes: a logit is the tree sum of 8 lanes over head_dim; weights add up in 8 lanes by
// token modulo 8 and then as a tree; values add up token by token.
#include "kernels/cpu/attention_work.h"
#include "kernels/cpu/vector_math_avx2.h"

OCTET_ISA_BEGIN("avx2,fma,f16c")
namespace octet::cpu {

// What a thread needs for one tile; about 100 KiB.
struct TileBufferAvx2 {
  static constexpr int64_t kStrip = 16;  // tokens converted at a time: 8 KiB of K at head_dim 128

  alignas(32) float q[kTilePairs * kTileMaxHeadDim];
  alignas(32) float strip[kStrip * kTileMaxHeadDim];
  alignas(32) float logits[kTilePairs * kKvSplit];  // then weights
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

// The tile's queries, rows of `dim` floats padded with zeros.
OCTET_ALWAYS_INLINE void load_queries_avx2(const Attention::Args& args, const AttentionWork& work,
                                           const AttentionTile& tile, float* q, int64_t dim) {
  for (int64_t p = 0; p < tile.count; ++p) {
    const float* src =
        args.q + work.row(tile, p) * args.q_stride + work.head(tile, p) * args.head_dim;
    std::memcpy(q + p * dim, src, static_cast<size_t>(args.head_dim) * sizeof(float));
    std::fill(q + p * dim + args.head_dim, q + (p + 1) * dim, 0.0F);
  }
}

// Tokens [tokens.begin, tokens.end) of K or V as rows of `dim` floats padded with zeros.
template <DType kType>
OCTET_ALWAYS_INLINE void convert_avx2(const Attention::Args& args, const void* cache,
                                      const AttentionTile& tile, TokenRange tokens, float* out,
                                      int64_t dim) {
  const int32_t* table = args.block_tables + tile.span->table * args.table_stride;
  const int64_t whole = args.head_dim / 8 * 8;
  for (int64_t token = tokens.begin; token < tokens.end; ++token, out += dim) {
    const int64_t slot = table[token / args.block_size] * args.block_size + token % args.block_size;
    const auto* src = static_cast<const KvElement<kType>*>(cache) +
                      kv_offset(slot, tile.kv_head, args.block_size, args.kv_heads, args.head_dim);
    for (int64_t d = 0; d < whole; d += 8) {
      _mm256_store_ps(out + d, load_kv_avx2<kType>(src + d));
    }
    if (whole < args.head_dim) {
      _mm256_store_ps(out + whole, load_kv_tail_avx2<kType>(src + whole, args.head_dim - whole));
    }
    for (int64_t d = (args.head_dim + 7) / 8 * 8; d < dim; d += 8) {
      _mm256_store_ps(out + d, _mm256_setzero_ps());
    }
  }
}

// Logits of every pair for `tokens` of one split, at logits[pair * kKvSplit + token - split begin].
template <DType kType>
OCTET_ALWAYS_INLINE void logits_avx2(const Attention::Args& args, const AttentionWork& work,
                                     const AttentionTile& tile, TokenRange split, TokenRange tokens,
                                     TileBufferAvx2& buffer, int64_t dim) {
  constexpr int64_t kStrip = TileBufferAvx2::kStrip;
  // Strips begin at multiples of kStrip, whatever the window: logits stay inside the split's row.
  for (int64_t begin = tokens.begin / kStrip * kStrip; begin < tokens.end; begin += kStrip) {
    const TokenRange strip = intersect(tokens, {begin, begin + kStrip});
    convert_avx2<kType>(args, args.k_cache, tile, strip, buffer.strip + (strip.begin - begin) * dim,
                        dim);
    for (int64_t p = 0; p < tile.count; ++p) {
      const TokenRange seen = intersect(strip, work.sees(*tile.span, work.row(tile, p)));
      float* out = buffer.logits + p * kKvSplit + begin - split.begin;
      for (int64_t t = (seen.begin - begin) / 8 * 8; t < seen.end - begin; t += 8) {
        _mm256_store_ps(out + t, dot8_avx2(buffer.q + p * dim, buffer.strip + t * dim, dim));
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

// The weighted sum of the values of `tokens`, added to each pair's out[pair * dim].
template <DType kType>
OCTET_ALWAYS_INLINE void values_avx2(const Attention::Args& args, const AttentionWork& work,
                                     const AttentionTile& tile, TokenRange split, TokenRange tokens,
                                     TileBufferAvx2& buffer, int64_t dim, float* const* out) {
  constexpr int64_t kStrip = TileBufferAvx2::kStrip;
  for (int64_t begin = tokens.begin; begin < tokens.end; begin += kStrip) {
    const TokenRange strip = intersect(tokens, {begin, begin + kStrip});
    convert_avx2<kType>(args, args.v_cache, tile, strip, buffer.strip, dim);
    for (int64_t p = 0; p < tile.count; ++p) {
      // Only tokens that the row sees: 0 times a foreign value that is not finite would be NaN.
      const TokenRange seen = intersect(strip, work.sees(*tile.span, work.row(tile, p)));
      if (seen.empty()) continue;
      const float* weights = buffer.logits + p * kKvSplit + seen.begin - split.begin;
      const float* values = buffer.strip + (seen.begin - strip.begin) * dim;
      const int64_t count = seen.end - seen.begin;
      int64_t d = 0;
      for (; d + 64 <= dim; d += 64) {
        add_values_avx2<8>(weights, count, values + d, dim, out[p] + d);
      }
      for (; d < dim; d += 16) {
        add_values_avx2<2>(weights, count, values + d, dim, out[p] + d);
      }
    }
  }
}

// The partial result of every pair of a tile for the tokens of split `split`. heads[p] and out[p]
// (dim floats) are written for the pairs that see a token of it, and no others.
template <DType kType>
void attend_split_avx2(const Attention::Args& args, const AttentionWork& work,
                       const AttentionTile& tile, int64_t split, TileBufferAvx2& buffer,
                       PartialHead* const* heads, float* const* out) {
  const int64_t dim = padded_dim(args.head_dim);
  const TokenRange all = split_tokens(split);
  const TokenRange tokens = intersect(all, work.sees(tile));
  if (tokens.empty()) return;
  logits_avx2<kType>(args, work, tile, all, tokens, buffer, dim);
  for (int64_t p = 0; p < tile.count; ++p) {
    TokenRange seen = intersect(all, work.sees(*tile.span, work.row(tile, p)));
    if (seen.empty()) continue;
    seen = {seen.begin - all.begin, seen.end - all.begin};
    *heads[p] = weigh_avx2(buffer.logits + p * kKvSplit, seen, args.scale * args.k_scale);
    std::fill(out[p], out[p] + dim, 0.0F);
  }
  values_avx2<kType>(args, work, tile, all, tokens, buffer, dim, out);
}

// Merges a later split's partial result into an earlier one's.
OCTET_ALWAYS_INLINE void merge_avx2(PartialHead& head, float* values, const PartialHead& next,
                                    const float* next_values, int64_t dim) {
  const float largest = head.largest > next.largest ? head.largest : next.largest;
  const __m256 scales =
      exp_avx2(_mm256_setr_ps(head.largest - largest, next.largest - largest, 0, 0, 0, 0, 0, 0));
  const __m256 own = _mm256_broadcastss_ps(_mm256_castps256_ps128(scales));
  const __m256 other = _mm256_broadcastss_ps(_mm_movehdup_ps(_mm256_castps256_ps128(scales)));
  const float own_scale = _mm256_cvtss_f32(own);
  const float other_scale = _mm256_cvtss_f32(other);
  head.sum = head.sum * own_scale + next.sum * other_scale;
  head.largest = largest;
  for (int64_t d = 0; d < dim; d += 8) {
    const __m256 add = _mm256_mul_ps(_mm256_loadu_ps(next_values + d), other);
    _mm256_storeu_ps(values + d, _mm256_fmadd_ps(_mm256_loadu_ps(values + d), own, add));
  }
}

// The output of one row and head from its merged result.
OCTET_ALWAYS_INLINE void finish_avx2(const PartialHead& head, const float* values, float v_scale,
                                     int64_t head_dim, float* out) {
  const __m256 factor = _mm256_set1_ps(v_scale / head.sum);
  int64_t d = 0;
  for (; d + 8 <= head_dim; d += 8) {
    _mm256_storeu_ps(out + d, _mm256_mul_ps(_mm256_loadu_ps(values + d), factor));
  }
  if (d < head_dim) {
    _mm256_maskstore_ps(out + d, lanes_avx2(head_dim - d),
                        _mm256_mul_ps(_mm256_loadu_ps(values + d), factor));
  }
}

}  // namespace octet::cpu
OCTET_ISA_END
