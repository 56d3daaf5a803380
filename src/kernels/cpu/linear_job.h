#pragma once
// One call of a wide-vector linear kernel after its input has been put in order: what the stream
// and the panel form share.
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/linear_pieces.h"

namespace octet {

struct LinearJob {
  const LinearArgs& args;
  const PackedWeight& weight;
  WeightScales weight_scales;
  InputScales input_scales;
  const Piece* pieces;
  int64_t piece_count;
  const std::byte* x;  // [M] rows of vectors in the order of the weights, 64-byte aligned
  size_t x_stride;     // bytes between rows of x

  // Scales of weight row n, one per weight_col of a piece.
  const float* scales_of_row(int64_t n) const {
    static constexpr float kOne = 1.0F;  // plain weights have one column
    const float* row = weight_scales.row(n);
    return row == nullptr ? &kOne : row;
  }
  float bias_of_row(int64_t n) const { return weight.bias == nullptr ? 0.0F : weight.bias[n]; }
  float* y(int64_t m) const { return args.y + m * args.y_stride; }
};

}  // namespace octet
