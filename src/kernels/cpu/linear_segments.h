#pragma once
// How the scales of a linear layer cut its K axis. One formula for every granularity:
//   y[m, n] = sum over segments of  dot(x[m, segment], w[n, segment])
//             * weight scale [tile_row(n)][segment.weight_col] * input scale [m][segment.input_col]
// Tensor and row weights with an input that has one scale a row are a single segment. Everything
// here is baseline code that kernels may call from inside an ISA region.
#include <cstdint>

#include "op/linear.h"

namespace octet {

// A stretch of K in which neither the weight scale nor the input scale of a row changes.
struct Segment {
  int64_t begin = 0;
  int64_t end = 0;         // past the last element, > begin
  int64_t weight_col = 0;  // column of the weight's scale grid
  int64_t input_col = 0;   // column of the input's scale grid
};

// Walks the segments of a problem in order of K. A cut through a tile (first_col) is a short first
// segment.
class Segments {
 public:
  explicit Segments(const LinearProblem& problem)
      : k_(problem.k),
        weight_(is_f8(problem.weight.dtype) ? problem.weight.tile : ScaleTile{}),
        input_(problem.activation ? problem.activation->tile : ScaleTile{}) {}

  // The next segment; false when K is used up.
  bool next(Segment& segment) {
    if (segment_.end >= k_) return false;
    const int64_t begin = segment_.end;
    segment_.begin = begin;
    segment_.weight_col = weight_.at(begin);
    segment_.input_col = input_.at(begin);
    segment_.end = k_;
    if (weight_.next < segment_.end) segment_.end = weight_.next;
    if (input_.next < segment_.end) segment_.end = input_.next;
    segment = segment_;
    return true;
  }

 private:
  // The tile of one operand that the walk is in, without a division per step.
  struct Axis {
    explicit Axis(const ScaleTile& tile)
        : size(tile.cols), next(tile.cols == kWhole ? kWhole : tile.cols - tile.first_col) {}

    // Column of the tile that holds element k; calls come in increasing order of k.
    int64_t at(int64_t k) {
      if (k >= next) {
        ++col;
        next += size;
      }
      return col;
    }

    int64_t size;
    int64_t next;  // first element of the next tile
    int64_t col = 0;
  };

  int64_t k_;
  Axis weight_;
  Axis input_;
  Segment segment_{};
};

// Number of segments, and the length of the longest.
struct SegmentCount {
  int64_t segments = 0;
  int64_t longest = 0;  // in elements
};

// Counts the segments of a problem. Cost: O(segments).
inline SegmentCount count_segments(const LinearProblem& problem) {
  SegmentCount count;
  Segments walk(problem);
  for (Segment s; walk.next(s);) {
    ++count.segments;
    if (s.end - s.begin > count.longest) count.longest = s.end - s.begin;
  }
  return count;
}

// The scales of the weight rows: at(n, col) for any granularity; 1 for plain weights.
struct WeightScales {
  explicit WeightScales(const PackedWeight& weight)
      : data(weight.scales), cols(weight.scale_cols), tile(weight.problem.weight.tile) {}

  // Scales of row n, one per weight_col of a segment; null for plain weights.
  const float* row(int64_t n) const {
    return data == nullptr ? nullptr : data + tile.tile_row(n) * cols;
  }

  const float* data;
  int64_t cols;
  ScaleTile tile;
};

// The scales of a quantised input: at(m, col) for tensor, row and group tiles; 1 for others.
struct InputScales {
  InputScales(const LinearInput& x, const LinearProblem& problem)
      : data(problem.activation ? x.scales : nullptr),
        stride(problem.activation && problem.activation->tile.granularity() != Granularity::Tensor
                   ? problem.activation->tile.tile_cols(problem.k)
                   : 0) {}

  float at(int64_t m, int64_t col) const { return data == nullptr ? 1.0F : data[m * stride + col]; }

  const float* data;
  int64_t stride;  // elements between rows; 0: one scale for all rows
};

}  // namespace octet
