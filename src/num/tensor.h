#pragma once
// Views of tensors: values that own nothing and must not outlive the bytes they look at.
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "num/quant_spec.h"

namespace octet {

// The extents of a tensor, outermost first, at most kMaxRank of them.
class Shape {
 public:
  static constexpr int kMaxRank = 6;  // image towers in text checkpoints have 5

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<int64_t> extents) {
    for (int64_t e : extents) push_back(e);
  }

  constexpr int rank() const { return rank_; }
  constexpr int64_t operator[](int axis) const { return extents_[axis]; }
  // Number of elements; 1 for rank 0.
  constexpr int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= extents_[i];
    return n;
  }
  // Appends an extent. Requires rank() < kMaxRank.
  constexpr void push_back(int64_t extent) { extents_[rank_++] = extent; }

  constexpr bool operator==(const Shape&) const = default;

 private:
  int64_t extents_[kMaxRank] = {};
  int rank_ = 0;
};

// "[2, 3]".
std::string to_string(const Shape& shape);

// Read-only tensor, row-major; `row_stride` (elements between rows of a rank-2 view) may exceed the
// row length after a cut of columns. `data` is null for headers-only checkpoints.
struct ConstTensorView {
  const std::byte* data = nullptr;
  DType dtype = DType::F32;
  Shape shape;
  int64_t row_stride = 0;  // in elements; rank 2 only

  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data);
  }
};

// A half-open range of rows or columns, in elements.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  constexpr int64_t size() const { return end - begin; }
  constexpr bool operator==(const Range&) const = default;
};

// One weight record of a checkpoint: codes [N, K] with their scale grid, as they lie on disk.
//   value(n, k) = decode(codes[n][k]) * scales[spec.tile.tile_row(n)][spec.tile.tile_col(k)]
struct QuantView {
  ConstTensorView codes;  // [N, K] of spec.dtype
  ConstTensorView
      scales;  // grid of spec.scale_dtype, row stride in elements; data is null for plain weights
  ConstTensorView input_scale;  // one value, or data null and rank 0 elements: none
  ConstTensorView bias;         // [N], or dtype/shape empty: none
  bool has_input_scale = false;
  bool has_bias = false;
  QuantSpec spec;

  int64_t n() const { return codes.shape[0]; }
  int64_t k() const { return codes.shape[1]; }
};

// The part of a record that holds rows [rows) and columns [cols): same bytes, tile offsets moved,
// bias cut with the rows. This is a rank's share: a cut may go through the middle of a scale block.
QuantView slice(const QuantView& view, Range rows, Range cols);

// Element i of a float tensor (F32, F16, BF16, E8M0, or an f8 type) as float32. Requires data and i
// < elements.
float element(const ConstTensorView& view, int64_t i);

}  // namespace octet
