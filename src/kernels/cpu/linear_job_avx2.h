#pragma once
// One call of an AVX2 linear kernel once its input lies in lane order, and what the stream and the
// panel form share: scaling a segment's lane sums and writing y.
#include "kernels/cpu/linear_pieces_avx2.h"

namespace octet::avx2 {

struct Job {
  const LinearArgs* args;
  const PackedWeight* weight;
  const Plan* plan;
  const Piece* pieces;  // [plan->count.pieces]
  const float* x;       // tiles of tokens: [tile][step][token of tile][32]
  WeightScales weight_scales;
  InputScales input_scales;
  bool grouped;  // the input has several scales a row: they belong to the segments
  float unit;    // product of the units of the decoders
};

// Rows n of a job: quad i of a thread's rows is first + i * quad_step + r * row_step, r = 0..3,
// where that is below `end`; rows at or above it are computed from row end - 1 and not written.
struct Rows {
  int64_t first = 0, end = 0;
  int64_t quads = 0;
  int64_t quad_step = 0, row_step = 0;

  // Four far-apart streams of consecutive rows.
  static Rows far(int64_t first, int64_t end) {
    const int64_t quads = (end - first + 3) / 4;
    return {first, end, quads, 1, quads};
  }
  // Four neighbours.
  static Rows near(int64_t first, int64_t end) { return {first, end, (end - first + 3) / 4, 4, 1}; }
  int64_t row(int64_t quad, int r) const { return first + quad * quad_step + r * row_step; }
  int64_t readable(int64_t quad, int r) const {
    const int64_t n = row(quad, r);
    return n < end ? n : end - 1;
  }
};

// Scales of the four rows of a quad, one per weight_col; rows of plain weights have a single one.
struct QuadScales {
  QuadScales(const Job& job, const Rows& rows, int64_t quad) {
    static constexpr float kOne = 1.0F;
    for (int r = 0; r < 4; ++r) {
      const float* scales = job.weight_scales.row(rows.readable(quad, r));
      row[r] = scales == nullptr ? &kOne : scales;
    }
  }
  const float* row[4];
};

OCTET_ISA_BEGIN("avx2,fma,f16c")

// total + lanes * weight scale * input scale; the input scale only where it belongs to segments.
OCTET_ALWAYS_INLINE __m256 scaled_add(__m256 lanes, float weight_scale, bool grouped,
                                      float input_scale, __m256 total) {
  const __m256 w = _mm256_set1_ps(weight_scale);
  if (!grouped) return _mm256_fmadd_ps(lanes, w, total);
  return _mm256_fmadd_ps(_mm256_mul_ps(lanes, w), _mm256_set1_ps(input_scale), total);
}

// y of token m and the rows of a quad, from the lane sums of each row.
OCTET_ALWAYS_INLINE void write_y(const Job& job, const Rows& rows, int64_t quad, int64_t m,
                                 const __m256 totals[4]) {
  alignas(16) float sums[4];
  _mm_store_ps(sums, sum_lanes(totals[0], totals[1], totals[2], totals[3]));
  const float input_scale = job.grouped ? 1.0F : job.input_scales.at(m, 0);
  float* y = job.args->y + m * job.args->y_stride;
  for (int r = 0; r < 4; ++r) {
    const int64_t n = rows.row(quad, r);
    if (n >= rows.end) break;
    const float value = sums[r] * input_scale;
    y[n] = job.weight->bias == nullptr ? value : value + job.weight->bias[n];
  }
}

OCTET_ISA_END

}  // namespace octet::avx2
