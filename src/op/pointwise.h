#pragma once
// Element by element: the gated activation of the MLP, and rounding of a carrier to bfloat16.
#include "op/catalog.h"

namespace octet {

// out = silu(gate) * up, silu(x) = x / (1 + exp(-x)).
struct SiluMul {
  static constexpr std::string_view kName = "silu_mul";

  struct Problem {};
  struct Caps {};

  struct Args {
    const float* gate = nullptr;  // [rows, width], rows `stride` elements apart
    const float* up = nullptr;    // same shape and stride
    int64_t stride = 0;
    float* out = nullptr;  // [rows, width], rows out_stride apart; may be gate
    int64_t out_stride = 0;
    int64_t rows = 0;
    int64_t width = 0;
    bool round_bf16 = false;  // round silu(gate) and out to bf16
  };
};

// x = bf16(x), in place.
struct RoundBf16 {
  static constexpr std::string_view kName = "round";

  struct Problem {};
  struct Caps {};

  struct Args {
    float* x = nullptr;  // [rows, width], rows `stride` elements apart
    int64_t stride = 0;
    int64_t rows = 0;
    int64_t width = 0;
  };
};

inline void judge(const SiluMul::Caps&, const SiluMul::Problem&, std::vector<Refusal>&) {}
inline void judge(const RoundBf16::Caps&, const RoundBf16::Problem&, std::vector<Refusal>&) {}

}  // namespace octet
