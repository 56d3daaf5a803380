#pragma once
// The form for many tokens: a panel of rows is decoded once per span into scratch, then tiles of up
// to six tokens and four rows are multiplied from there. Cost: 2 M N K operations; the roof is the
// multiply-add rate. Sums are taken in the order of the stream form, so y has the same bits.
#include "kernels/cpu/linear_sums_avx512.h"

namespace octet::avx512 {

OCTET_ISA_BEGIN(OCTET_LINEAR_ISA)

// Rows of a panel: with a span of K it takes at most 260 KiB, part of the second-level cache.
inline constexpr int64_t kPanelRows = 64;

// Bytes between rows of a panel. The extra line keeps rows from sharing cache sets.
template <class Weights>
constexpr size_t panel_stride() {
  return static_cast<size_t>(Weights::kSpanChunks * Weights::kVectors + 1) * 64;
}
template <class Weights>
constexpr size_t panel_bytes() {
  return panel_stride<Weights>() * static_cast<size_t>(kPanelRows);
}

// The pieces of one span, and which of all spans it is.
struct Span {
  const Piece* begin;
  const Piece* end;
  bool first;
  bool last;
};

// Rows of a panel that are fetched ahead of their decoding: the time to decode four spans of rows
// covers the latency of DRAM.
inline constexpr int64_t kRowsAhead = 4;

// Decodes a span of row n; a chunk that two pieces share is written twice, masked.
template <class Weights>
void decode_row(const Weights& weights, const LinearJob& job, const Span& span, int64_t n,
                std::byte* out) {
  const auto* row =
      static_cast<const typename Weights::Element*>(job.weight.codes) + n * job.weight.row_stride;
  const auto store = [&](const __m512i(&v)[Weights::kVectors]) OCTET_LAMBDA_INLINE {
    OCTET_UNROLL
    for (int i = 0; i < Weights::kVectors; ++i) _mm512_store_si512(out + 64 * i, v[i]);
    out += 64 * Weights::kVectors;
  };
  for (const Piece* piece = span.begin; piece != span.end; ++piece) {
    walk_chunks(
        *piece,
        [&](int64_t c) OCTET_LAMBDA_INLINE {
          prefetch_chunk(row + c * kChunk + kRowsAhead * job.weight.row_stride, 0);
          __m512i v[Weights::kVectors];
          weights.load(row + c * kChunk, v);
          store(v);
        },
        [&](int64_t c, uint64_t mask) OCTET_LAMBDA_INLINE {
          __m512i v[Weights::kVectors];
          weights.load(row + c * kChunk, mask, v);
          store(v);
        });
  }
}

// sum[4 m + r] = products of `vectors` vectors of panel row r and token m, from zero.
template <class Weights, int kTokens>
OCTET_ALWAYS_INLINE void tile_piece(const std::byte* w, const std::byte* x, size_t x_stride,
                                    int64_t vectors, __m512 (&sum)[4 * kTokens]) {
  set_zero(sum);
  for (int64_t i = 0; i < vectors; ++i) {
    __m512i rows[4];
    OCTET_UNROLL
    for (int r = 0; r < 4; ++r) {
      rows[r] = _mm512_load_si512(w + static_cast<size_t>(r) * panel_stride<Weights>() + 64 * i);
    }
    OCTET_UNROLL
    for (int m = 0; m < kTokens; ++m) {
      const __m512i token = _mm512_load_si512(x + static_cast<size_t>(m) * x_stride + 64 * i);
      OCTET_UNROLL
      for (int r = 0; r < 4; ++r) {
        sum[4 * m + r] = Weights::multiply_add(rows[r], token, sum[4 * m + r]);
      }
    }
  }
}

// Four panel rows, from `w` on, times kTokens tokens over one span.
template <class Weights, int kTokens>
OCTET_ALWAYS_INLINE void tile_span(const LinearJob& job, const Span& span,
                                   const float* const (&scales)[4], const std::byte* w, int64_t m0,
                                   __m128 (&value)[kTokens]) {
  const std::byte* x = job.x + static_cast<size_t>(m0) * job.x_stride;
  const auto multiply = [&](const Piece& piece, __m512(&sum)[4 * kTokens]) OCTET_LAMBDA_INLINE {
    tile_piece<Weights, kTokens>(w, x + piece.chunk * (64 * Weights::kVectors), job.x_stride,
                                 piece.chunks * Weights::kVectors, sum);
    w += piece.chunks * (64 * Weights::kVectors);
  };
  if (span.end - span.begin == 1) {
    __m512 sum[4 * kTokens];
    multiply(*span.begin, sum);
    const TileScales<kTokens> tile = piece_scales<kTokens>(job, *span.begin, scales, m0);
    OCTET_UNROLL
    for (int m = 0; m < kTokens; ++m) value[m] = fold_scaled<kTokens>(sum + 4 * m, tile, m);
    return;
  }
  __m512 total[4 * kTokens];
  set_zero(total);
  for (const Piece* piece = span.begin; piece != span.end; ++piece) {
    __m512 sum[4 * kTokens];
    multiply(*piece, sum);
    add_scaled<kTokens>(sum, piece_scales<kTokens>(job, *piece, scales, m0), total);
  }
  OCTET_UNROLL
  for (int m = 0; m < kTokens; ++m) value[m] = fold_rows(total + 4 * m);
}

// Adds a span to tokens [m0, m0 + kTokens) of rows [n, n + rows) of y; w: the first of four panel
// rows.
template <class Weights, int kTokens>
void tile(const LinearJob& job, const Span& span, const std::byte* w, int64_t m0, int64_t n,
          int rows) {
  const float* scales[4];
  for (int r = 0; r < 4; ++r) scales[r] = job.scales_of_row(n + std::min(r, rows - 1));
  __m128 value[kTokens];
  tile_span<Weights, kTokens>(job, span, scales, w, m0, value);
  const auto mask = static_cast<__mmask8>((1U << rows) - 1U);
  const __m128 bias = span.last && job.weight.bias != nullptr
                          ? _mm_maskz_loadu_ps(mask, job.weight.bias + n)
                          : _mm_setzero_ps();
  OCTET_UNROLL
  for (int m = 0; m < kTokens; ++m) {
    float* y = job.y(m0 + m) + n;
    __m128 sum = value[m];
    if (!span.first) sum = _mm_add_ps(_mm_maskz_loadu_ps(mask, y), sum);
    if (span.last) sum = _mm_add_ps(sum, bias);
    _mm_mask_storeu_ps(y, mask, sum);
  }
}

// Asks for share `part` of `parts` of the span of x that the tile after tokens [.., m0) reads. x of
// a long prompt lies in the third cache or in DRAM, and a tile's first pass over it would wait
// there.
template <class Weights>
OCTET_ALWAYS_INLINE void prefetch_tokens(const LinearJob& job, const Span& span, int64_t m0,
                                         int64_t part, int64_t parts) {
  constexpr int64_t kChunkBytes = 64 * Weights::kVectors;
  const int64_t bytes =
      (span.end[-1].chunk + span.end[-1].chunks - span.begin->chunk) * kChunkBytes;
  const int64_t begin = bytes * part / parts / 64 * 64;
  const int64_t end = bytes * (part + 1) / parts / 64 * 64;
  const int64_t last = std::min(job.args.m, m0 + kTileTokens);
  for (int64_t m = m0; m < last; ++m) {
    const std::byte* x =
        job.x + static_cast<size_t>(m) * job.x_stride + span.begin->chunk * kChunkBytes;
    for (int64_t b = begin; b < end; b += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(x + b), _MM_HINT_T1);
    }
  }
}

// All tokens times the panel's rows [n, n + rows) over one span.
template <class Weights>
void multiply_panel(const LinearJob& job, const Span& span, const std::byte* panel, int64_t n,
                    int64_t rows) {
  for_token_tiles(job.args.m, [&]<int kTokens>(Tokens<kTokens>, int64_t m0) {
    for (int64_t r = 0; r < rows; r += 4) {
      prefetch_tokens<Weights>(job, span, m0 + kTokens, r / 4, (rows + 3) / 4);
      tile<Weights, kTokens>(job, span, panel + static_cast<size_t>(r) * panel_stride<Weights>(),
                             m0, n + r, static_cast<int>(std::min<int64_t>(4, rows - r)));
    }
  });
}

// Rows [n, n + rows) of y, rows <= kPanelRows.
template <class Weights>
void panel_rows(const Weights& weights, const LinearJob& job, std::byte* panel, int64_t n,
                int64_t rows) {
  const Piece* const end = job.pieces + job.piece_count;
  for (const Piece* begin = job.pieces; begin != end;) {
    const Piece* last = begin;
    while (!last->ends_span) ++last;
    const Span span{begin, last + 1, begin == job.pieces, last + 1 == end};
    for (int64_t r = 0; r < (rows + 3) / 4 * 4; ++r) {  // repeats the last row to fill a tile
      decode_row(weights, job, span, n + std::min(r, rows - 1),
                 panel + static_cast<size_t>(r) * panel_stride<Weights>());
    }
    multiply_panel<Weights>(job, span, panel, n, rows);
    begin = last + 1;
  }
}

OCTET_ISA_END

}  // namespace octet::avx512
