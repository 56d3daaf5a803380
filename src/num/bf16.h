#pragma once
// Scalar conversions of the 16-bit float types. Bit-exact, round to nearest even, no dependence on
// the FPU mode.
#include <bit>
#include <cstdint>

namespace octet {

// bfloat16 bits to float32; exact.
constexpr float bf16_to_f32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// float32 to bfloat16 bits, round to nearest even; NaN stays NaN (quiet), overflow becomes
// infinity.
constexpr uint16_t f32_to_bf16(float value) {
  const auto u = std::bit_cast<uint32_t>(value);
  if ((u & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<uint16_t>((u >> 16) | 0x40U);
  return static_cast<uint16_t>((u + 0x7FFFU + ((u >> 16) & 1U)) >> 16);
}

// `value` rounded to bfloat16 and back.
constexpr float round_to_bf16(float value) {
  return bf16_to_f32(f32_to_bf16(value));
}

// IEEE binary16 bits to float32; exact, subnormals included.
float f16_to_f32(uint16_t bits);

// float32 to IEEE binary16 bits, round to nearest even; overflow becomes infinity, NaN stays NaN.
uint16_t f32_to_f16(float value);

}  // namespace octet
