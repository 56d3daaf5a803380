#pragma once
// Scalar codecs of the 8-bit float types. Decoding is exact; encoding rounds to nearest even,
// saturates finite values and infinities at the largest finite value, and keeps NaN. Formats: OCP
// 8-bit Floating Point Specification (OFP8), OCP Microscaling Formats (MX) v1.0 for E8M0.
#include <array>
#include <bit>
#include <cstdint>

#include "num/dtype.h"

namespace octet {

// E4M3FN: s eeee mmm, bias 7, no infinity, NaN = S.1111.111, max 448.
float f8e4m3_to_f32(uint8_t code);
uint8_t f32_to_f8e4m3(float value);

// E5M2: s eeeee mm, bias 15, infinities and NaN as IEEE, max 57344.
float f8e5m2_to_f32(uint8_t code);
uint8_t f32_to_f8e5m2(float value);

// E8M0: 2^(code - 127), code 255 is NaN; a scale, never negative or zero.
float f8e8m0_to_f32(uint8_t code);

// All 256 values of an 8-bit float type as float32, index = code. Requires is_f8(t).
const std::array<float, 256>& f8_table(DType t);

// Encodes to E4M3 or E5M2. Requires is_f8(t).
uint8_t f32_to_f8(DType t, float value);

}  // namespace octet
