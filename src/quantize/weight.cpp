#include "quantize/weight.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "num/bf16.h"
#include "num/f8.h"

namespace octet {
namespace {

constexpr float kMaxCode = 448;

float round_to(float value, DType dtype) {
  if (dtype == DType::BF16) return round_to_bf16(value);
  if (dtype == DType::F16) return f16_to_f32(f32_to_f16(value));
  return value;
}

float epsilon(DType dtype) {
  if (dtype == DType::BF16) return 0x1p-7F;
  return dtype == DType::F16 ? 0x1p-10F : 0x1p-23F;
}

float scale_of(float amax, DType dtype) {
  const float scale = round_to(amax / kMaxCode, dtype);
  return scale == 0 ? epsilon(dtype) : scale;
}

void store(std::byte* out, float value, DType dtype) {
  if (dtype == DType::F32) {
    std::memcpy(out, &value, sizeof value);
    return;
  }
  const uint16_t bits = dtype == DType::BF16 ? f32_to_bf16(value) : f32_to_f16(value);
  std::memcpy(out, &bits, sizeof bits);
}

// The largest magnitude in [rows) x [cols), exact; NaN counts as nothing: its code tells of it.
float amax_of(const ConstTensorView& weight, Range rows, Range cols) {
  float largest = 0;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    for (int64_t c = cols.begin; c < cols.end; ++c) {
      largest = std::max(largest, std::fabs(element(weight, r * weight.row_stride + c)));
    }
  }
  return largest;
}

Shape scale_shape(const ScaleTile& tile, int64_t n, int64_t k) {
  if (tile.granularity() == Granularity::Tensor) return {1};
  return {tile.tile_rows(n), tile.tile_cols(k)};
}

}  // namespace

std::vector<std::byte> scale_bytes(float amax, DType dtype) {
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_of(dtype)));
  store(bytes.data(), scale_of(amax, dtype), dtype);
  return bytes;
}

QuantizedWeight quantize_weight(const ConstTensorView& weight, const ScaleTile& tile,
                                ThreadPool& pool) {
  OCTET_CHECK(weight.shape.rank() == 2, "a weight of shape {}", to_string(weight.shape));
  const int64_t n = weight.shape[0];
  const int64_t k = weight.shape[1];
  const DType dtype = weight.dtype;
  const int64_t tile_cols = tile.tile_cols(k);
  QuantizedWeight out;
  out.codes.resize(static_cast<size_t>(n * k));
  out.scale_shape = scale_shape(tile, n, k);
  std::vector<float> scales(static_cast<size_t>(tile.tile_rows(n) * tile_cols));
  const auto width = [](Extent extent, int64_t whole) { return extent == kWhole ? whole : extent; };
  const int64_t rows = width(tile.rows, n);
  const int64_t cols = width(tile.cols, k);
  pool.parallel_for(static_cast<int64_t>(scales.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t r = i / tile_cols * rows;
      const int64_t c = i % tile_cols * cols;
      scales[static_cast<size_t>(i)] =
          scale_of(amax_of(weight, {r, std::min(r + rows, n)}, {c, std::min(c + cols, k)}), dtype);
    }
  });
  const bool adds_zero_point = tile.granularity() == Granularity::Tensor;
  pool.parallel_for(n, 16, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t c = 0; c < k; ++c) {
        const float scale =
            scales[static_cast<size_t>(tile.tile_row(r) * tile_cols + tile.tile_col(c))];
        float quotient = round_to(element(weight, r * weight.row_stride + c) / scale, dtype);
        if (adds_zero_point) quotient += 0.0F;
        out.codes[static_cast<size_t>(r * k + c)] = f32_to_f8e4m3(quotient);
      }
    }
  });
  out.scales.resize(scales.size() * static_cast<size_t>(bytes_of(dtype)));
  for (size_t i = 0; i < scales.size(); ++i) {
    store(out.scales.data() + i * static_cast<size_t>(bytes_of(dtype)), scales[i], dtype);
  }
  return out;
}

}  // namespace octet
