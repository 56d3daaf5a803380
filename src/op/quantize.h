#pragma once
// The input of a linear layer as its kernel takes it: bfloat16, or 8-bit codes with scales.
#include "num/quant_spec.h"
#include "op/catalog.h"

namespace octet {

// q = round(clamp(x / s)): a true division, nearest even, saturating, NaN kept.
//   static   s is given, one for the whole tensor
//   dynamic  s = dynamic_scale(largest magnitude of the tile); NaN and infinities among x make s
//            NaN or infinite, so that they reach the result
// A dynamic tile is one row (per token) or `cols` elements of a row (group, the last may be short);
// one dynamic scale for all rows would make a row depend on its batch, and is refused.
struct Quantize {
  static constexpr std::string_view kName = "quantize";

  struct Problem {
    QuantSpec output;  // dtype BF16 (no scale), F8E4M3 or F8E5M2
    int64_t width = 0;
  };

  struct Caps {
    EnumSet<DType> outputs;
    EnumSet<Granularity> scales;  // tensor is static, the others are dynamic
    // What the float32 scales may stand for; f8e8m0: powers of two.
    EnumSet<DType> scale_dtypes = {DType::F32, DType::F8E8M0};
  };

  struct Args {
    const float* x = nullptr;  // [rows, width], rows x_stride elements apart
    int64_t x_stride = 0;
    int64_t rows = 0;
    int64_t width = 0;
    QuantSpec output;
    const float* static_scale = nullptr;  // [1], static only
    void* codes = nullptr;                // [rows, width] of output.dtype, dense
    float* scales = nullptr;              // dynamic: [rows, tile_cols(width)], dense
  };
};

void judge(const Quantize::Caps& caps, const Quantize::Problem& problem, std::vector<Refusal>& out);

// The dynamic scale of a tile whose largest magnitude is `amax`: amax / max_finite, one division in
// float32; 2^-23 where that is zero. This is what compressed-tensors computes from float32 inputs
// (quantization/utils/helpers.py, calculate_qparams); vLLM differs by a floor only, 1 / (448 * 512)
// per token and 1e-10 / 448 per group. A subnormal scale is kept: x / s stays finite, and clamping
// saturates what its rounding puts over max_finite.
float dynamic_scale(float amax, DType dtype);

// The same for an activation spec: a power of two when its scales are E8M0 (MX).
float dynamic_scale(float amax, const QuantSpec& spec);

}  // namespace octet
