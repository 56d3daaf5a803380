#pragma once
// The input of a linear layer as its kernel takes it: bfloat16, or 8-bit codes with scales.
#include "num/quant_spec.h"
#include "op/catalog.h"

namespace octet {

// q = round(clamp(x / s)), nearest even, saturating, NaN kept. Formulas of the scales
// (docs/NUMERICS.md):
//   static        s is given
//   dynamic       s = max(amax, kMinScale-bounded) over the tile; see dynamic_scale()
// A tile is one row (per token) or `cols` elements of a row (group, the last may be short).
struct Quantize {
  static constexpr std::string_view kName = "quantize";

  struct Problem {
    QuantSpec output;  // dtype BF16 (no scale), F8E4M3 or F8E5M2
    int64_t width = 0;
  };

  struct Caps {
    EnumSet<DType> outputs;
    EnumSet<Granularity> scales;  // tensor: static only
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

// The dynamic scale of a tile whose largest magnitude is `amax`: amax / max_finite, never below the
// smallest scale that keeps x / s finite and s normal. Per-token and group use the same formula as
// compressed-tensors (float32 arithmetic).
float dynamic_scale(float amax, DType dtype);

}  // namespace octet
