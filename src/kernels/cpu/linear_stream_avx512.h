#pragma once
// The form for few tokens: every weight is read once, decoded in registers and multiplied with all
// tokens. Cost: N * K bytes of weights; the roof is the memory's read bandwidth. Four rows that lie
// far apart are read together, because that keeps more of DRAM busy than four neighbours do.
#include "kernels/cpu/linear_formats_avx512.h"
#include "kernels/cpu/linear_job.h"
#include "kernels/cpu/linear_sums_avx512.h"

namespace octet::avx512 {

OCTET_ISA_BEGIN(OCTET_LINEAR_ISA)

// 2 KiB ahead in each of the four streams: about 40 lines in flight, more than a core can keep
// open.
inline constexpr int64_t kPrefetchBytes = 2048;

// sum[4 m + r] += the products of one chunk of row w[r] and token m.
template <class Weights, int kTokens, class Load>
OCTET_ALWAYS_INLINE void stream_chunk(const std::byte* x, size_t x_stride, const Load& load,
                                      __m512 (&sum)[4 * kTokens]) {
  OCTET_UNROLL
  for (int r = 0; r < 4; ++r) {
    __m512i w[Weights::kVectors];
    load(r, w);
    OCTET_UNROLL
    for (int m = 0; m < kTokens; ++m) {
      OCTET_UNROLL
      for (int v = 0; v < Weights::kVectors; ++v) {
        sum[4 * m + r] = Weights::multiply_add(
            w[v], _mm512_load_si512(x + static_cast<size_t>(m) * x_stride + 64 * v),
            sum[4 * m + r]);
      }
    }
  }
}

// The products of one piece, summed from zero.
template <class Weights, int kTokens>
OCTET_ALWAYS_INLINE void stream_piece(const Weights& weights,
                                      const typename Weights::Element* const (&rows)[4],
                                      const std::byte* x, size_t x_stride, const Piece& piece,
                                      __m512 (&sum)[4 * kTokens]) {
  set_zero(sum);
  const auto x_of = [&](int64_t c) { return x + c * (64 * Weights::kVectors); };
  walk_chunks(
      piece,
      [&](int64_t c) OCTET_LAMBDA_INLINE {
        stream_chunk<Weights, kTokens>(
            x_of(c), x_stride,
            [&](int r, __m512i(&w)[Weights::kVectors]) OCTET_LAMBDA_INLINE {
              const auto* p = rows[r] + c * kChunk;
              prefetch_chunk(p, kPrefetchBytes);
              weights.load(p, w);
            },
            sum);
      },
      [&](int64_t c, uint64_t mask) OCTET_LAMBDA_INLINE {
        stream_chunk<Weights, kTokens>(
            x_of(c), x_stride,
            [&](int r, __m512i(&w)[Weights::kVectors])
                OCTET_LAMBDA_INLINE { weights.load(rows[r] + c * kChunk, mask, w); },
            sum);
      });
}

// Tokens [m0, m0 + kTokens) times the four rows n[], over all of K. Rows may repeat.
template <class Weights, int kTokens>
void stream_rows(const Weights& weights, const LinearJob& job, int64_t m0, const int64_t (&n)[4]) {
  const typename Weights::Element* rows[4];
  const float* scales[4];
  for (int r = 0; r < 4; ++r) {
    rows[r] = static_cast<const typename Weights::Element*>(job.weight.codes) +
              n[r] * job.weight.row_stride;
    scales[r] = job.scales_of_row(n[r]);
  }
  const std::byte* x = job.x + static_cast<size_t>(m0) * job.x_stride;
  __m128 value[kTokens];
  for (int m = 0; m < kTokens; ++m) value[m] = _mm_setzero_ps();
  __m512 total[4 * kTokens];
  bool starts_span = true;
  for (const Piece* piece = job.pieces; piece != job.pieces + job.piece_count; ++piece) {
    __m512 sum[4 * kTokens];
    stream_piece<Weights, kTokens>(weights, rows, x, job.x_stride, *piece, sum);
    const TileScales<kTokens> tile = piece_scales<kTokens>(job, *piece, scales, m0);
    if (starts_span && piece->ends_span) {
      OCTET_UNROLL
      for (int m = 0; m < kTokens; ++m) {
        value[m] = _mm_add_ps(value[m], fold_scaled<kTokens>(sum + 4 * m, tile, m));
      }
      continue;
    }
    if (starts_span) set_zero(total);
    add_scaled<kTokens>(sum, tile, total);
    starts_span = piece->ends_span;
    if (!piece->ends_span) continue;
    OCTET_UNROLL
    for (int m = 0; m < kTokens; ++m) value[m] = _mm_add_ps(value[m], fold_rows(total + 4 * m));
  }
  for (int m = 0; m < kTokens; ++m) {
    alignas(16) float four[4];
    _mm_store_ps(four, value[m]);
    for (int r = 0; r < 4; ++r) job.y(m0 + m)[n[r]] = four[r] + job.bias_of_row(n[r]);
  }
}

// Rows [begin, end) of y. The four rows stay in the first or second cache from one tile of tokens
// to the next, which decodes them again.
template <class Weights>
void stream_range(const Weights& weights, const LinearJob& job, int64_t begin, int64_t end) {
  const int64_t stride = (end - begin + 3) / 4;
  for (int64_t i = begin; i < begin + stride; ++i) {
    int64_t n[4];
    for (int r = 0; r < 4; ++r) n[r] = std::min(i + r * stride, end - 1);
    for_token_tiles(job.args.m, [&]<int kTokens>(Tokens<kTokens>, int64_t m0) {
      stream_rows<Weights, kTokens>(weights, job, m0, n);
    });
  }
}

OCTET_ISA_END

}  // namespace octet::avx512
