#include "num/f8.h"

#include <cmath>
#include <limits>

#include "base/error.h"

namespace octet {
namespace {

// One formula for both types: sign, exponent field of `kExpBits`, mantissa of 7 - kExpBits bits.
template <int kExpBits>
float decode_finite(uint8_t code) {
  constexpr int kManBits = 7 - kExpBits;
  constexpr int kBias = (1 << (kExpBits - 1)) - 1;
  const int exponent = code >> kManBits & ((1 << kExpBits) - 1);
  const int mantissa = code & ((1 << kManBits) - 1);
  const float magnitude =
      exponent == 0
          ? std::ldexp(static_cast<float>(mantissa), 1 - kBias - kManBits)
          : std::ldexp(static_cast<float>(mantissa + (1 << kManBits)), exponent - kBias - kManBits);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

// Rounds |value| <= max to the nearest code, ties to even, and returns the code without its sign.
template <int kExpBits>
uint8_t encode_magnitude(float magnitude) {
  constexpr int kManBits = 7 - kExpBits;
  constexpr int kBias = (1 << (kExpBits - 1)) - 1;
  constexpr float kMinNormal = std::bit_cast<float>(static_cast<uint32_t>(127 + 1 - kBias) << 23);
  if (magnitude < kMinNormal) {
    // Spacing is constant below the smallest normal: adding 2^23 spacings makes the FPU round to
    // it.
    constexpr float kMagic =
        std::bit_cast<float>(static_cast<uint32_t>(127 + 1 - kBias - kManBits + 23) << 23);
    return static_cast<uint8_t>(std::bit_cast<uint32_t>(magnitude + kMagic) & 0xFFU);
  }
  constexpr int kDrop = 23 - kManBits;
  const auto u = std::bit_cast<uint32_t>(magnitude);
  const uint32_t rounded = u + ((1U << (kDrop - 1)) - 1U) + (u >> kDrop & 1U);
  return static_cast<uint8_t>((rounded >> kDrop) -
                              (static_cast<uint32_t>(127 - kBias) << kManBits));
}

template <int kExpBits>
uint8_t encode(float value, float max, uint8_t nan_code) {
  const auto sign = static_cast<uint8_t>(std::bit_cast<uint32_t>(value) >> 24 & 0x80U);
  if (std::isnan(value)) return static_cast<uint8_t>(sign | nan_code);
  return static_cast<uint8_t>(sign | encode_magnitude<kExpBits>(std::fmin(std::fabs(value), max)));
}

template <float (*kDecode)(uint8_t)>
std::array<float, 256> make_table() {
  std::array<float, 256> table{};
  for (int code = 0; code < 256; ++code) {
    table[static_cast<size_t>(code)] = kDecode(static_cast<uint8_t>(code));
  }
  return table;
}

}  // namespace

float f8e4m3_to_f32(uint8_t code) {
  if ((code & 0x7F) == 0x7F)
    return std::copysign(std::numeric_limits<float>::quiet_NaN(),
                         (code & 0x80) != 0 ? -1.0F : 1.0F);
  return decode_finite<4>(code);
}

uint8_t f32_to_f8e4m3(float value) {
  return encode<4>(value, 448.0F, 0x7F);
}

float f8e5m2_to_f32(uint8_t code) {
  const int magnitude = code & 0x7F;
  const float sign = (code & 0x80) != 0 ? -1.0F : 1.0F;
  if (magnitude > 0x7C) return std::copysign(std::numeric_limits<float>::quiet_NaN(), sign);
  if (magnitude == 0x7C) return std::copysign(std::numeric_limits<float>::infinity(), sign);
  return decode_finite<5>(code);
}

uint8_t f32_to_f8e5m2(float value) {
  return encode<5>(value, 57344.0F, 0x7E);
}

float f8e8m0_to_f32(uint8_t code) {
  if (code == 255) return std::numeric_limits<float>::quiet_NaN();
  return code == 0 ? 0x1p-127F : std::bit_cast<float>(static_cast<uint32_t>(code) << 23);
}

const std::array<float, 256>& f8_table(DType t) {
  OCTET_CHECK(is_f8(t), "dtype is {}", name(t));
  static const std::array<float, 256> kE4m3 = make_table<f8e4m3_to_f32>();
  static const std::array<float, 256> kE5m2 = make_table<f8e5m2_to_f32>();
  return t == DType::F8E4M3 ? kE4m3 : kE5m2;
}

uint8_t f32_to_f8(DType t, float value) {
  OCTET_CHECK(is_f8(t), "dtype is {}", name(t));
  return t == DType::F8E4M3 ? f32_to_f8e4m3(value) : f32_to_f8e5m2(value);
}

}  // namespace octet
