#pragma once
// Decodes 64 8-bit floats to bfloat16 by table: exact for all 256 codes of E4M3 and E5M2,
// subnormals, infinities and NaN included. Needs AVX-512 BW and VBMI.
#include <array>
#include <cstdint>

#include "kernels/cpu/intrinsics.h"
#include "num/dtype.h"
#include "op/isa.h"

#define OCTET_ISA_F8_AVX512 "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi"

namespace octet::avx512 {

// The high and the low byte of the bfloat16 of every code without its sign.
struct alignas(64) F8Tables {
  std::array<uint8_t, 128> high;
  std::array<uint8_t, 128> low;
};

// bfloat16 bits of a code below 0x80. NaN codes give the quiet NaN 0x7FC0. Format: OCP OFP8.
constexpr uint16_t bf16_of_f8(int code, int mantissa_bits, bool has_infinity) {
  const int bias = mantissa_bits == 3 ? 7 : 15;
  const int exponent = code >> mantissa_bits;
  int mantissa = code & ((1 << mantissa_bits) - 1);
  if (has_infinity && exponent == 31) return mantissa == 0 ? 0x7F80 : 0x7FC0;
  if (!has_infinity && code == 0x7F) return 0x7FC0;
  if (code == 0) return 0;
  int unbiased = exponent - bias;
  if (exponent == 0) {  // a subnormal: shift its leading one into the place of the hidden bit
    unbiased = 1 - bias;
    while ((mantissa >> mantissa_bits) == 0) {
      mantissa <<= 1;
      --unbiased;
    }
    mantissa &= (1 << mantissa_bits) - 1;
  }
  return static_cast<uint16_t>(((unbiased + 127) << 7) | (mantissa << (7 - mantissa_bits)));
}

constexpr F8Tables make_f8_tables(int mantissa_bits, bool has_infinity) {
  F8Tables tables{};
  for (int code = 0; code < 128; ++code) {
    const uint16_t bits = bf16_of_f8(code, mantissa_bits, has_infinity);
    tables.high[static_cast<size_t>(code)] = static_cast<uint8_t>(bits >> 8);
    tables.low[static_cast<size_t>(code)] = static_cast<uint8_t>(bits & 0xFF);
  }
  return tables;
}

inline constexpr F8Tables kE4m3Tables = make_f8_tables(3, false);
inline constexpr F8Tables kE5m2Tables = make_f8_tables(2, true);

// Requires is_f8(dtype).
inline const F8Tables& f8_tables(DType dtype) {
  return dtype == DType::F8E5M2 ? kE5m2Tables : kE4m3Tables;
}

OCTET_ISA_BEGIN(OCTET_ISA_F8_AVX512)

// The tables in registers. decode() costs two vpermi2b, one vpternlog and two byte unpacks, and
// leaves the values in unpack order: with v[64] the values of `codes`,
//   first  = v[0..7],  v[16..23], v[32..39], v[48..55]
//   second = v[8..15], v[24..31], v[40..47], v[56..63]
// Whoever multiplies them puts the other operand into this order once (order_like_f8).
struct F8Decoder {
  explicit F8Decoder(const F8Tables& tables)
      : high0(_mm512_load_si512(tables.high.data())),
        high1(_mm512_load_si512(tables.high.data() + 64)),
        low0(_mm512_load_si512(tables.low.data())),
        low1(_mm512_load_si512(tables.low.data() + 64)),
        sign(_mm512_set1_epi8(static_cast<char>(0x80))) {}

  // The table index uses the low 7 bits of a code only; vpternlog (0xF8: a | b & c) puts the sign
  // back.
  void decode(__m512i codes, __m512i& first, __m512i& second) const {
    const __m512i low = _mm512_permutex2var_epi8(low0, codes, low1);
    const __m512i high =
        _mm512_ternarylogic_epi32(_mm512_permutex2var_epi8(high0, codes, high1), codes, sign, 0xF8);
    first = _mm512_unpacklo_epi8(low, high);
    second = _mm512_unpackhi_epi8(low, high);
  }

  __m512i high0, high1, low0, low1, sign;
};

// Puts 64 bfloat16 values, v[0..31] in a and v[32..63] in b, into the order of F8Decoder::decode.
inline void order_like_f8(__m512i a, __m512i b, __m512i& first, __m512i& second) {
  first = _mm512_shuffle_i32x4(a, b, 0x88);
  second = _mm512_shuffle_i32x4(a, b, 0xDD);
}

OCTET_ISA_END

}  // namespace octet::avx512
