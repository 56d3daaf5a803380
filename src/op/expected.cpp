#include "op/expected.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "num/bf16.h"
#include "num/error_bound.h"
#include "num/f8.h"
#include "num/tensor.h"

namespace octet {

Expected rounded(Expected e, DType dtype) {
  const double low = as_stored(dtype, e.value - e.bound);
  const double high = as_stored(dtype, e.value + e.bound);
  return {(low + high) / 2, (high - low) / 2};
}

Expected times(Expected e, double factor) {
  const double product = e.value * factor;
  if (e.bound == 0 && double{static_cast<float>(product)} == product) return {product, 0};
  const double size = std::fabs(factor);
  return {product, e.bound * size + worst_bound(1, (std::fabs(e.value) + e.bound) * size)};
}

void store_value(std::byte* dst, DType dtype, float value) {
  if (is_f8(dtype)) {
    *dst = std::byte{f32_to_f8(dtype, value)};
  } else if (dtype == DType::F32) {
    std::memcpy(dst, &value, sizeof value);
  } else {
    OCTET_CHECK(dtype == DType::F16 || dtype == DType::BF16, "dtype is {}", name(dtype));
    const uint16_t bits = dtype == DType::F16 ? f32_to_f16(value) : f32_to_bf16(value);
    std::memcpy(dst, &bits, sizeof bits);
  }
}

double as_stored(DType dtype, double value) {
  std::byte bytes[sizeof(float)];
  store_value(bytes, dtype, static_cast<float>(value));
  return element({bytes, dtype, {}, 0}, 0);
}

}  // namespace octet
