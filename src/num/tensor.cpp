#include "num/tensor.h"

#include <fmt/format.h>

#include <cstring>

#include "base/error.h"
#include "num/bf16.h"
#include "num/f8.h"

namespace octet {
namespace {

// Moves a [rows, cols] view to start at (r, c) with the given extents.
ConstTensorView cut(const ConstTensorView& view, Range rows, Range cols) {
  ConstTensorView part = view;
  part.shape = Shape{rows.size(), cols.size()};
  if (view.data != nullptr) {
    part.data = view.data + (rows.begin * view.row_stride + cols.begin) * bytes_of(view.dtype);
  }
  return part;
}

}  // namespace

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", shape[i]);
  return text + "]";
}

QuantView slice(const QuantView& view, Range rows, Range cols) {
  OCTET_CHECK(rows.begin >= 0 && rows.begin <= rows.end && rows.end <= view.n() &&
                  cols.begin >= 0 && cols.begin <= cols.end && cols.end <= view.k(),
              "rows [{}, {}) cols [{}, {}) of {}", rows.begin, rows.end, cols.begin, cols.end,
              to_string(view.codes.shape));
  QuantView part = view;
  part.codes = cut(view.codes, rows, cols);
  if (is_f8(view.spec.dtype)) {
    const ScaleTile& tile = view.spec.tile;
    const Range grid_rows{tile.tile_row(rows.begin), rows.size() == 0
                                                         ? tile.tile_row(rows.begin)
                                                         : tile.tile_row(rows.end - 1) + 1};
    const Range grid_cols{tile.tile_col(cols.begin), cols.size() == 0
                                                         ? tile.tile_col(cols.begin)
                                                         : tile.tile_col(cols.end - 1) + 1};
    part.scales = cut(view.scales, grid_rows, grid_cols);
    if (tile.rows != kWhole) part.spec.tile.first_row = (rows.begin + tile.first_row) % tile.rows;
    if (tile.cols != kWhole) part.spec.tile.first_col = (cols.begin + tile.first_col) % tile.cols;
  }
  if (view.has_bias) {
    part.bias.shape = Shape{rows.size()};
    if (view.bias.data != nullptr)
      part.bias.data = view.bias.data + rows.begin * bytes_of(view.bias.dtype);
  }
  return part;
}

float element(const ConstTensorView& view, int64_t i) {
  const std::byte* p = view.data + i * bytes_of(view.dtype);
  switch (view.dtype) {
    case DType::F32: {
      float f = 0;
      std::memcpy(&f, p, sizeof f);
      return f;
    }
    case DType::F16:
    case DType::BF16: {
      uint16_t u = 0;
      std::memcpy(&u, p, sizeof u);
      return view.dtype == DType::BF16 ? bf16_to_f32(u) : f16_to_f32(u);
    }
    case DType::F8E4M3:
      return f8e4m3_to_f32(std::to_integer<uint8_t>(*p));
    case DType::F8E5M2:
      return f8e5m2_to_f32(std::to_integer<uint8_t>(*p));
    case DType::F8E8M0:
      return f8e8m0_to_f32(std::to_integer<uint8_t>(*p));
    case DType::I64:
    case DType::I32:
    case DType::I16:
    case DType::I8:
    case DType::U8:
    case DType::Bool:
      break;
  }
  throw_error(Code::Bug, fmt::format("element() of a {} tensor", name(view.dtype)));
}

}  // namespace octet
