#pragma once
// Few tokens: rows are decoded into the FMA. One or two tokens read four far-apart rows in step,
// each to its end, because four streams come faster from memory than one; more tokens are bound by
// arithmetic and take two rows at a time for tiles of up to four tokens.
#include "kernels/cpu/linear_job_avx2.h"

namespace octet::avx2 {

// How far ahead of its use a stream is fetched: hardware prefetchers stop at 4 KiB pages.
inline constexpr int64_t kPrefetchBytes = 1024;

OCTET_ISA_BEGIN("avx2,fma,f16c")

// A row whose codes hold an E4M3 NaN becomes NaN for tokens [m, m + tokens).
inline void spoil_nan_row(const Job& job, int64_t n, int64_t m, int64_t tokens) {
  const auto* codes = static_cast<const uint8_t*>(job.weight->codes) + n * job.weight->row_stride;
  bool found = false;
  for (int64_t k = 0; k < job.weight->problem.k; ++k) found = found || is_e4m3_nan(codes[k]);
  if (!found) return;
  for (int64_t t = m; t < m + tokens; ++t) {
    job.args->y[t * job.args->y_stride + n] = __builtin_nanf("");
  }
}

// lanes[t] += x_t * w.
template <int T>
OCTET_ALWAYS_INLINE void add_step(const Step& w, const float* x, __m256 lanes[T]) {
  OCTET_UNROLL
  for (int j = 0; j < 4; ++j) {
    OCTET_UNROLL
    for (int t = 0; t < T; ++t) {
      lanes[t] = _mm256_fmadd_ps(w.v[j], _mm256_loadu_ps(x + t * kStep + 8 * j), lanes[t]);
    }
  }
}

// Adds one piece to the lane sums of R rows and T tokens.
template <class F, int R, int T>
OCTET_ALWAYS_INLINE const float* add_piece(const Piece& piece, const typename F::Element* const* w,
                                           const float* x, Watch& watch, __m256 lanes[R][T]) {
  const int64_t whole = piece.k + piece.whole;
  for (int64_t k = piece.k; k < whole; k += kStep, x += T * kStep) {
    // One index for all rows: g++ would keep a pointer for each and spend an addition on each.
    asm volatile("" : "+r"(k));
    OCTET_UNROLL
    for (int r = 0; r < R; ++r) {
      _mm_prefetch(reinterpret_cast<const char*>(w[r] + k) + kPrefetchBytes, _MM_HINT_T0);
      add_step<T>(F::decode(w[r] + k, watch), x, lanes[r]);
      // Decoded rows side by side would not fit the registers.
      asm volatile("" ::: "memory");
    }
  }
  if (piece.rest != 0) {
    OCTET_UNROLL
    for (int r = 0; r < R; ++r) {
      add_step<T>(decode_part<F>(w[r] + whole, piece.rest, watch), x, lanes[r]);
    }
    x += T * kStep;
  }
  return x;
}

// y of tokens [m, m + T) for the R rows of one group.
template <class F, int R, int T>
void stream_group(const Job& job, const Rows& rows, int64_t group, int64_t m) {
  using Element = typename F::Element;
  const GroupScales<R> scales(job, rows, group);
  const Element* w[R];
  __m256 lanes[R][T], totals[T][4];
  Watch watch{_mm256_setzero_si256()};
  OCTET_UNROLL
  for (int r = 0; r < R; ++r) {
    w[r] = static_cast<const Element*>(job.weight->codes) +
           rows.readable(group, r) * job.weight->row_stride;
  }
  OCTET_UNROLL
  for (int t = 0; t < T; ++t) {
    OCTET_UNROLL
    for (int r = 0; r < 4; ++r) totals[t][r] = _mm256_setzero_ps();
    OCTET_UNROLL
    for (int r = 0; r < R; ++r) lanes[r][t] = _mm256_setzero_ps();
  }
  const float* x = job.x + m * job.plan->k.steps * kStep;
  const Piece* const end = job.pieces + job.plan->k.pieces;
  for (const Piece* piece = job.pieces; piece != end; ++piece) {
    x = add_piece<F, R, T>(*piece, w, x, watch, lanes);
    if (!piece->ends) continue;
    OCTET_UNROLL
    for (int r = 0; r < R; ++r) {
      const __m256 scale = _mm256_set1_ps(scales.row[r][piece->weight_col]);
      OCTET_UNROLL
      for (int t = 0; t < T; ++t) {
        totals[t][r] = _mm256_fmadd_ps(lanes[r][t], scale, totals[t][r]);
        lanes[r][t] = _mm256_setzero_ps();
      }
    }
  }
  int64_t to[4] = {};
  int count = 0;
  for (; count < R && rows.row(group, count) < rows.end; ++count)
    to[count] = rows.row(group, count);
  OCTET_UNROLL
  for (int t = 0; t < T; ++t) {
    const __m256* sums = totals[t];
    write_y(job, m + t, to, count, sum_lanes(sums[0], sums[1], sums[2], sums[3]));
  }
  if (F::kWatched && watch.saw_e4m3_nan()) {
    for (int r = 0; r < count; ++r) spoil_nan_row(job, to[r], m, T);
  }
}

// Rows [begin, end) for all tokens.
template <class F>
void stream_rows(const Job& job, int64_t begin, int64_t end) {
  const Tiles& tiles = job.plan->tiles;
  const Rows rows = Rows::far(begin, end, tiles.m <= 2 ? 4 : 2);
  for (int64_t group = 0; group < rows.groups; ++group) {
    if (tiles.m == 1) {
      stream_group<F, 4, 1>(job, rows, group, 0);
      continue;
    }
    if (tiles.m == 2) {
      stream_group<F, 4, 2>(job, rows, group, 0);
      continue;
    }
    for (int64_t i = 0; i < tiles.count; ++i) {
      const int64_t m = tiles.first(i), size = tiles.size(i);
      if (size == 4) {
        stream_group<F, 2, 4>(job, rows, group, m);
      } else if (size == 3) {
        stream_group<F, 2, 3>(job, rows, group, m);
      } else {
        stream_group<F, 2, 2>(job, rows, group, m);
      }
    }
  }
}

OCTET_ISA_END

}  // namespace octet::avx2
