#pragma once
// The largest magnitude of a tensor, kept over calls: what static input scales are calibrated from.
#include "op/catalog.h"

namespace octet {

// out[0] = max(out[0], max |x|); a NaN in x makes it NaN.
struct AbsMax {
  static constexpr std::string_view kName = "absmax";
  struct Problem {};
  struct Caps {};
  struct Args {
    const float* x = nullptr;  // [rows, width], rows `stride` elements apart
    int64_t stride = 0;
    int64_t rows = 0;
    int64_t width = 0;
    float* out = nullptr;  // [1]
  };
};

inline void judge(const AbsMax::Caps&, const AbsMax::Problem&, std::vector<Refusal>&) {}

}  // namespace octet
