#include "op/quantize_reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "num/bf16.h"
#include "num/f8.h"

namespace octet {
namespace {

// The scale of columns [begin, end) of one row.
float tile_scale(const float* row, int64_t begin, int64_t end, const QuantSpec& output) {
  float amax = 0;
  bool nan = false;
  for (int64_t i = begin; i < end; ++i) {
    nan = nan || std::isnan(row[i]);
    amax = std::max(amax, std::fabs(row[i]));
  }
  return dynamic_scale(nan ? std::nanf("") : amax, output);
}

}  // namespace

QuantizedInput quantize_reference(const float* x, int64_t rows, int64_t width,
                                  const QuantSpec& output, float static_scale) {
  QuantizedInput out;
  out.codes.resize(static_cast<size_t>(rows * width * bytes_of(output.dtype)));
  if (!is_f8(output.dtype)) {
    for (int64_t i = 0; i < rows * width; ++i) {
      const uint16_t bits = f32_to_bf16(x[i]);
      std::memcpy(out.codes.data() + i * 2, &bits, sizeof bits);
    }
    return out;
  }
  const bool dynamic = output.timing == ScaleTiming::Dynamic;
  const int64_t step = output.tile.cols == kWhole || !dynamic ? width : output.tile.cols;
  for (int64_t row = 0; row < rows; ++row) {
    const float* values = x + row * width;
    for (int64_t begin = 0; begin < width; begin += step) {
      const int64_t end = std::min(begin + step, width);
      const float scale = dynamic ? tile_scale(values, begin, end, output) : static_scale;
      if (dynamic) out.scales.push_back(scale);
      for (int64_t i = begin; i < end; ++i) {
        out.codes[static_cast<size_t>(row * width + i)] =
            std::byte{f32_to_f8(output.dtype, values[i] / scale)};
      }
    }
  }
  return out;
}

}  // namespace octet
