#pragma once
// RMSNorm, with the residual addition before it and the watch for values that are not finite.
#include "op/catalog.h"

namespace octet {

// x += delta (if given); out = x / sqrt(mean(x^2) + epsilon) * weight, per row. Without a weight
// the addition and the watch are all, and out is not written: layers whose input is not normalised.
struct RmsNorm {
  static constexpr std::string_view kName = "norm";

  struct Problem {
    int64_t width = 0;
  };

  struct Caps {
    int64_t width_multiple = 1;
  };

  struct Args {
    float* x =
        nullptr;  // [rows, width], rows x_stride elements apart; changed only when delta is given
    int64_t x_stride = 0;
    const float* delta = nullptr;  // [rows, width], rows delta_stride apart, or null
    int64_t delta_stride = 0;
    const float* weight = nullptr;  // [width], or null
    float* out = nullptr;           // [rows, width], rows out_stride apart; may be x
    int64_t out_stride = 0;
    int64_t rows = 0;
    int64_t width = 0;
    float epsilon = 0;
    bool round_bf16 = false;  // round x after the addition, the normalised x, and out to bf16, as
                              // transformers does in bf16
    // [rows / rows_per_flag] or null: flag = min(flag, tag) when a row's sum of squares is not
    // finite.
    int32_t* not_finite = nullptr;
    int64_t rows_per_flag = 1;
    int32_t tag = 0;
  };
};

void judge(const RmsNorm::Caps& caps, const RmsNorm::Problem& problem, std::vector<Refusal>& out);

}  // namespace octet
