#include "op/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "num/bf16.h"

namespace octet {
namespace {

// Formula of compressed-tensors for MX activations (quantization/utils/mxfp_utils.py,
// generate_mx_scales): the exponent of amax, one more when the mantissa is 1.75 or above, minus the
// exponent of the largest finite code. 2^-127, code 0 of E8M0, is the smallest.
float mx_scale(float amax, DType dtype) {
  if (std::isnan(amax) || std::isinf(amax)) return std::numeric_limits<float>::quiet_NaN();
  const uint32_t rounded = std::bit_cast<uint32_t>(amax) + (1U << 21);
  const int exponent = static_cast<int>(rounded >> 23) - 127;
  const int offset = dtype == DType::F8E4M3 ? 8 : 15;
  return std::ldexp(1.0F, std::clamp(exponent - offset, -127, 127));
}

}  // namespace

float dynamic_scale(float amax, DType dtype) {
  const float scale = amax / static_cast<float>(info(dtype).max_finite);
  return scale == 0 ? std::numeric_limits<float>::epsilon() : scale;
}

float dynamic_scale(float amax, const QuantSpec& spec) {
  if (spec.scale_dtype == DType::F8E8M0) return mx_scale(amax, spec.dtype);
  return dynamic_scale(amax, spec.dtype);
}

}  // namespace octet
