#pragma once
// What Quantize has to give, in plain loops: what a kernel's codes and scales are compared with, to
// the bit.
#include <cstddef>
#include <vector>

#include "op/quantize.h"

namespace octet {

struct QuantizedInput {
  std::vector<std::byte> codes;  // [rows, width] of the output dtype, dense
  std::vector<float> scales;     // dynamic: [rows, tile_cols(width)]; else empty
};

// Quantises `rows` rows of `width` values, dense. `static_scale` counts for static specs only.
QuantizedInput quantize_reference(const float* x, int64_t rows, int64_t width,
                                  const QuantSpec& output, float static_scale);

}  // namespace octet
