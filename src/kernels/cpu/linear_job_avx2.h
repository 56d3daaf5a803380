#pragma once
// One call of an AVX2 linear kernel once its input lies in lane order, and what the stream and the
// panel form share: rows, their scales, and writing y.
#include "kernels/cpu/linear_pieces_avx2.h"

namespace octet::avx2 {

struct Job {
  const LinearArgs* args;
  const PackedWeight* weight;
  const Plan* plan;
  const Piece* pieces;  // [plan->k.pieces]
  const Chunk* chunks;  // [plan->k.chunks]
  const float* x;       // panels: [chunk][tile][step of chunk][token of tile][32]; streams:
                        // [tile][step][token of tile][32]
  WeightScales weight_scales;
  InputScales input_scales;
  bool grouped;  // the input has several scales a row: x holds them already
  float unit;    // product of the units of the decoders, a power of two

  // x of one tile, which begins at `token` and has `size` tokens, for one chunk.
  const float* x_of(const Chunk& chunk, int64_t token, int64_t size) const {
    return x + (plan->streams() ? token * plan->k.steps + chunk.x_step * size
                                : chunk.x_step * plan->m + token * chunk.steps) *
                   kStep;
  }
  // What the sum over all segments of token m is multiplied with: the scale of its row of x where
  // there is one, and the decoders' unit, which costs no rounding.
  float row_scale(int64_t m) const { return grouped ? unit : unit * input_scales.at(m, 0); }
};

// Rows of a thread in groups of kRows that are computed together: row r of group i is first + i *
// group_step + r * row_step where that is below `end`; others are computed from row end - 1 and not
// written.
struct Rows {
  int64_t first = 0, end = 0;
  int64_t groups = 0;
  int64_t group_step = 0, row_step = 0;

  // `rows` far-apart streams of consecutive rows.
  static Rows far(int64_t first, int64_t end, int64_t rows) {
    const int64_t groups = (end - first + rows - 1) / rows;
    return {first, end, groups, 1, groups};
  }
  // `rows` neighbours.
  static Rows near(int64_t first, int64_t end, int64_t rows) {
    return {first, end, (end - first + rows - 1) / rows, rows, 1};
  }
  int64_t row(int64_t group, int r) const { return first + group * group_step + r * row_step; }
  int64_t readable(int64_t group, int r) const {
    const int64_t n = row(group, r);
    return n < end ? n : end - 1;
  }
};

// Scales of the R rows of a group, one per weight_col; rows of plain weights have a single one.
template <int R>
struct GroupScales {
  GroupScales(const Job& job, const Rows& rows, int64_t group) {
    static constexpr float kOne = 1.0F;
    for (int r = 0; r < R; ++r) {
      const float* scales = job.weight_scales.row(rows.readable(group, r));
      row[r] = scales == nullptr ? &kOne : scales;
    }
  }
  const float* row[R];
};

OCTET_ISA_BEGIN("avx2,fma,f16c")

// y of token m for four rows, from the lane sums of each. Rows may lie anywhere.
OCTET_ALWAYS_INLINE void write_y(const Job& job, int64_t m, const int64_t rows[4], int count,
                                 __m128 sums) {
  alignas(16) float values[4];
  _mm_store_ps(values, sums);
  const float scale = job.row_scale(m);
  float* y = job.args->y + m * job.args->y_stride;
  for (int r = 0; r < count; ++r) {
    const float value = values[r] * scale;
    y[rows[r]] = job.weight->bias == nullptr ? value : value + job.weight->bias[rows[r]];
  }
}

// The same for four neighbours.
OCTET_ALWAYS_INLINE void write_four(const Job& job, int64_t m, int64_t n, __m128 sums) {
  __m128 value = _mm_mul_ps(sums, _mm_set1_ps(job.row_scale(m)));
  if (job.weight->bias != nullptr) value = _mm_add_ps(value, _mm_loadu_ps(job.weight->bias + n));
  _mm_storeu_ps(job.args->y + m * job.args->y_stride + n, value);
}

OCTET_ISA_END

}  // namespace octet::avx2
