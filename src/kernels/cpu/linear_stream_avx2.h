#pragma once
// One or two tokens: four far-apart rows are read in step, each to its end, and decoded into the
// FMA. Cost: the bytes of the weight once; 1.3 ns of decoding for 32 codes at 3 GHz.
#include "kernels/cpu/linear_job_avx2.h"

namespace octet::avx2 {

// How far ahead of its use a stream is fetched: hardware prefetchers stop at 4 KiB pages.
inline constexpr int64_t kPrefetchBytes = 1024;

OCTET_ISA_BEGIN("avx2,fma,f16c")

// Rows whose codes hold an E4M3 NaN become NaN for every token.
inline void spoil_nan_rows(const Job& job, const Rows& rows, int64_t quad, int64_t tokens) {
  for (int r = 0; r < 4 && rows.row(quad, r) < rows.end; ++r) {
    const int64_t n = rows.row(quad, r);
    const auto* codes = static_cast<const uint8_t*>(job.weight->codes) + n * job.weight->row_stride;
    bool found = false;
    for (int64_t k = 0; k < job.weight->problem.k; ++k) found = found || is_e4m3_nan(codes[k]);
    if (!found) continue;
    for (int64_t m = 0; m < tokens; ++m) {
      job.args->y[m * job.args->y_stride + n] = __builtin_nanf("");
    }
  }
}

// lanes[r][t] += x_t * decoded step of row r.
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

// y of T tokens for the rows of one quad.
template <class F, int T>
void stream_quad(const Job& job, const Rows& rows, int64_t quad) {
  using Element = typename F::Element;
  const QuadScales scales(job, rows, quad);
  const Element* w[4];
  __m256 lanes[4][T], totals[T][4];
  Watch watch{_mm256_setzero_si256()};
  OCTET_UNROLL
  for (int r = 0; r < 4; ++r) {
    w[r] = static_cast<const Element*>(job.weight->codes) +
           rows.readable(quad, r) * job.weight->row_stride;
    OCTET_UNROLL
    for (int t = 0; t < T; ++t) lanes[r][t] = totals[t][r] = _mm256_setzero_ps();
  }
  const float* x = job.x;
  for (int64_t i = 0; i < job.plan->count.pieces; ++i) {
    const Piece& piece = job.pieces[i];
    const int64_t whole = piece.k + piece.length / kStep * kStep;
    for (int64_t k = piece.k; k < whole; k += kStep, x += T * kStep) {
      OCTET_UNROLL
      for (int r = 0; r < 4; ++r) {
        _mm_prefetch(reinterpret_cast<const char*>(w[r] + k) + kPrefetchBytes, _MM_HINT_T0);
        add_step<T>(F::decode(w[r] + k, watch), x, lanes[r]);
        // Decoded rows side by side would not fit the registers.
        asm volatile("" ::: "memory");
      }
    }
    if (const int64_t rest = piece.length % kStep; rest != 0) {
      OCTET_UNROLL
      for (int r = 0; r < 4; ++r) {
        add_step<T>(decode_part<F>(w[r] + whole, rest, watch), x, lanes[r]);
      }
      x += T * kStep;
    }
    if (!piece.ends) continue;
    OCTET_UNROLL
    for (int r = 0; r < 4; ++r) {
      const float scale = scales.row[r][piece.weight_col] * job.unit;
      OCTET_UNROLL
      for (int t = 0; t < T; ++t) {
        totals[t][r] =
            scaled_add(lanes[r][t], scale, job.grouped,
                       job.grouped ? job.input_scales.at(t, piece.input_col) : 1.0F, totals[t][r]);
        lanes[r][t] = _mm256_setzero_ps();
      }
    }
  }
  OCTET_UNROLL
  for (int t = 0; t < T; ++t) write_y(job, rows, quad, t, totals[t]);
  if (F::kWatched && watch.saw_e4m3_nan()) spoil_nan_rows(job, rows, quad, T);
}

template <class F>
void stream_rows(const Job& job, int64_t begin, int64_t end) {
  const Rows rows = Rows::far(begin, end);
  for (int64_t quad = 0; quad < rows.quads; ++quad) {
    if (job.plan->m == 1) {
      stream_quad<F, 1>(job, rows, quad);
    } else {
      stream_quad<F, 2>(job, rows, quad);
    }
  }
}

OCTET_ISA_END

}  // namespace octet::avx2
