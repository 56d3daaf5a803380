#pragma once
// How partial sums become values of y, the same for every form and number of tokens:
//   piece   16 lanes of sums, from zero, chunk after chunk
//   span    of one piece: the lanes folded by a fixed tree, times weight scale * input scale
//           of more: total = fma(piece sums, weight scale * input scale, total), lane by lane, from
//           zero, then folded
//   value   of span after span added, from zero; the bias last
#include "kernels/cpu/linear_formats_avx512.h"
#include "kernels/cpu/linear_job.h"

namespace octet::avx512 {

// Tokens of a tile: its 24 sums for four rows leave eight registers for operands and tables.
inline constexpr int64_t kTileTokens = 6;

// A number of tokens as a type.
template <int kTokens>
struct Tokens {};

OCTET_ISA_BEGIN(OCTET_LINEAR_ISA)

// Calls run(Tokens<count>, first) for tiles that cover tokens [0, m). They have nearly equal
// heights: a tile of one or two tokens has too few independent sums to fill the pipeline.
template <class Run>
OCTET_ALWAYS_INLINE void for_token_tiles(int64_t m, const Run& run) {
  const int64_t tiles = (m + kTileTokens - 1) / kTileTokens;
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t first = m * t / tiles;
    switch (m * (t + 1) / tiles - first) {
      case 1:
        run(Tokens<1>{}, first);
        break;
      case 2:
        run(Tokens<2>{}, first);
        break;
      case 3:
        run(Tokens<3>{}, first);
        break;
      case 4:
        run(Tokens<4>{}, first);
        break;
      case 5:
        run(Tokens<5>{}, first);
        break;
      default:
        run(Tokens<6>{}, first);
        break;
    }
  }
}

// Scales of a tile: of[4 m + r] for token m and row r.
template <int kTokens>
struct TileScales {
  alignas(16) float of[4 * kTokens];
};

// scales: of the four rows; first_token: of the tile. The product of the two scales is rounded to
// float once.
template <int kTokens>
OCTET_ALWAYS_INLINE TileScales<kTokens> piece_scales(const LinearJob& job, const Piece& piece,
                                                     const float* const (&scales)[4],
                                                     int64_t first_token) {
  TileScales<kTokens> tile;
  const int64_t col = piece.weight_col;
  const __m128 rows = _mm_setr_ps(scales[0][col], scales[1][col], scales[2][col], scales[3][col]);
  OCTET_UNROLL
  for (int m = 0; m < kTokens; ++m) {
    const float input = job.input_scales.at(first_token + m, piece.input_col);
    _mm_store_ps(tile.of + 4 * m, _mm_mul_ps(rows, _mm_set1_ps(input)));
  }
  return tile;
}

// Lane r is the sum of the 16 lanes of t[r]: within 128 bits (0 + 2) + (1 + 3), then quarters
// (0 + 1) + (2 + 3).
OCTET_ALWAYS_INLINE __m128 fold_rows(const __m512* t) {
  const __m512 a = _mm512_add_ps(_mm512_unpacklo_ps(t[0], t[1]), _mm512_unpackhi_ps(t[0], t[1]));
  const __m512 b = _mm512_add_ps(_mm512_unpacklo_ps(t[2], t[3]), _mm512_unpackhi_ps(t[2], t[3]));
  const __m512d c = _mm512_castps_pd(a);
  const __m512d d = _mm512_castps_pd(b);
  const __m512 e = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(c, d)),
                                 _mm512_castpd_ps(_mm512_unpackhi_pd(c, d)));
  const __m128 low = _mm_add_ps(_mm512_castps512_ps128(e), _mm512_extractf32x4_ps(e, 1));
  const __m128 high = _mm_add_ps(_mm512_extractf32x4_ps(e, 2), _mm512_extractf32x4_ps(e, 3));
  return _mm_add_ps(low, high);
}

template <int kTokens>
OCTET_ALWAYS_INLINE __m128 fold_scaled(const __m512* sum, const TileScales<kTokens>& tile, int m) {
  return _mm_mul_ps(fold_rows(sum), _mm_load_ps(tile.of + 4 * m));
}

// total += sum * scale.
template <int kTokens>
OCTET_ALWAYS_INLINE void add_scaled(const __m512 (&sum)[4 * kTokens],
                                    const TileScales<kTokens>& tile, __m512 (&total)[4 * kTokens]) {
  OCTET_UNROLL
  for (int i = 0; i < 4 * kTokens; ++i) {
    total[i] = _mm512_fmadd_ps(sum[i], _mm512_set1_ps(tile.of[i]), total[i]);
  }
}

template <int kSums>
OCTET_ALWAYS_INLINE void set_zero(__m512 (&sum)[kSums]) {
  OCTET_UNROLL
  for (int i = 0; i < kSums; ++i) sum[i] = _mm512_setzero_ps();
}

OCTET_ISA_END

}  // namespace octet::avx512
