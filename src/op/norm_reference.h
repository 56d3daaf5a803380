#pragma once
// What RmsNorm has to give for one row, in double precision.
#include <cstdint>
#include <vector>

#include "op/expected.h"

namespace octet {

// x / sqrt(mean(x^2) + epsilon) * weight of `width` elements, after the addition of a residual.
// With round_bf16 the normalised x and the result are rounded. A kernel keeps the sum of squares in
// float64: the factor and two products are rounded, whatever the width.
std::vector<Expected> norm_reference(const float* x, const float* weight, int64_t width,
                                     float epsilon, bool round_bf16);

}  // namespace octet
