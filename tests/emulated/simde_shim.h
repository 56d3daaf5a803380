#pragma once
// AVX-512 for hosts that lack it: SIMDe's portable forms, and the intrinsics that its version 0.7.4
// does not have or defines otherwise than the hardware. Only kernel files of the emulated build
// include this (OCTET_EMULATED); it needs -mavx2 -mfma -mf16c, so that fused operations stay fused.
// What is not defined here or in SIMDe fails to compile: the compiler's own intrinsic would need
// AVX-512.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>

namespace octet::simde_shim {

// The lanes of a vector as an array, and back.
template <class T, class V>
std::array<T, sizeof(V) / sizeof(T)> lanes(V v) {
  return std::bit_cast<std::array<T, sizeof(V) / sizeof(T)>>(v);
}
template <class V, class T, size_t kCount>
V vector(const std::array<T, kCount>& a) {
  static_assert(sizeof(V) == sizeof(a));
  return std::bit_cast<V>(a);
}

// Lane by lane from one type to another: V is the result, To and From the lanes' types.
template <class V, class To, class From, class Source, class Convert>
V map_lanes(Source source, Convert convert) {
  const auto in = lanes<From>(source);
  std::array<To, sizeof(V) / sizeof(To)> out{};
  for (size_t i = 0; i < in.size() && i < out.size(); ++i) out[i] = convert(in[i]);
  return vector<V>(out);
}

// The conversions of C++; narrowing integers drops their high bits.
template <class To>
struct Convert {
  template <class From>
  To operator()(From e) const {
    return static_cast<To>(e);
  }
};

inline __m512i shift_right(__m512i v, int count) {
  auto a = lanes<int32_t>(v);
  for (int32_t& e : a) e >>= count;
  return vector<__m512i>(a);
}

// Masked memory access: lanes without a mask bit are not touched.
template <class V, class T>
V load_masked(V otherwise, uint64_t mask, const void* memory) {
  auto out = lanes<T>(otherwise);
  for (size_t i = 0; i < out.size(); ++i) {
    if ((mask >> i & 1) != 0) {
      std::memcpy(&out[i], static_cast<const char*>(memory) + i * sizeof(T), sizeof(T));
    }
  }
  return vector<V>(out);
}
template <class T, class V>
void store_masked(void* memory, uint64_t mask, V value) {
  const auto in = lanes<T>(value);
  for (size_t i = 0; i < in.size(); ++i) {
    if ((mask >> i & 1) != 0) {
      std::memcpy(static_cast<char*>(memory) + i * sizeof(T), &in[i], sizeof(T));
    }
  }
}

// The tree of _mm512_reduce_*: halves, quarters, then the same within 128 bits.
template <class T, class V, class Combine>
T reduce(V v, Combine combine) {
  auto a = lanes<T>(v);
  for (size_t half = a.size() / 2; half != 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) a[i] = combine(a[i], a[i + half]);
  }
  return a[0];
}

// VMAXPS and VMINPS: the second operand where either is NaN or both are zero.
inline float max_of(float a, float b) {
  return a > b ? a : b;
}
inline float min_of(float a, float b) {
  return a < b ? a : b;
}

// 512 or 256 bits as two halves.
struct FloatHalves {
  __m256 low, high;
};
struct IntHalves {
  __m256i low, high;
};
struct ShortHalves {
  __m128i low, high;
};

inline int32_t larger(int32_t a, int32_t b) {
  return a > b ? a : b;
}

// Hardware promises a relative error of 2^-14; these are exact to the last bit.
inline float reciprocal(float v) {
  return 1.0F / v;
}
inline float reciprocal_root(float v) {
  return 1.0F / std::sqrt(v);
}

// The value with subnormals replaced by a zero of their sign, as DAZ does.
inline __m256 flush(__m256 v) {
  const __m256i exponent = _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(0x7F800000));
  const __m256i zero = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
  return _mm256_andnot_ps(_mm256_castsi256_ps(_mm256_srli_epi32(zero, 1)), v);
}

// fma(a, b, c) with DAZ and FTZ. A result is tiny when it is below 2^-126 after rounding to 24 bits
// with an unbounded exponent; a fused multiply-add of everything times 2^48 shows that rounding.
inline __m256 fma_flushing(__m256 a, __m256 b, __m256 c) {
  a = flush(a);
  c = flush(c);
  const __m256 scale = _mm256_set1_ps(0x1p48F);
  const __m256 scaled = _mm256_fmadd_ps(_mm256_mul_ps(a, scale), b, _mm256_mul_ps(c, scale));
  const __m256 sign = _mm256_set1_ps(-0.0F);
  const __m256 tiny =
      _mm256_cmp_ps(_mm256_andnot_ps(sign, scaled), _mm256_set1_ps(0x1p-78F), _CMP_LT_OQ);
  const __m256 exact = _mm256_fmadd_ps(a, b, c);
  return _mm256_blendv_ps(exact, _mm256_and_ps(exact, sign), tiny);
}

// VDPBF16PS of 8 lanes: two fused multiply-adds, the odd element first, MXCSR not consulted,
// rounding to nearest even, subnormals flushed (Intel SDM, "VDPBF16PS"; checked against hardware by
// simde_shim_test).
inline __m256 dpbf16_half(__m256 sum, __m256i a, __m256i b) {
  const __m256i high = _mm256_set1_epi32(static_cast<int>(0xFFFF0000));
  const auto odd = [&](__m256i v) { return _mm256_castsi256_ps(_mm256_and_si256(v, high)); };
  const auto even = [](__m256i v) { return _mm256_castsi256_ps(_mm256_slli_epi32(v, 16)); };
  sum = fma_flushing(odd(a), flush(odd(b)), sum);
  return fma_flushing(even(a), flush(even(b)), sum);
}

template <class A, class B>
__m512 dpbf16(__m512 sum, A a, B b) {
  const auto s = std::bit_cast<FloatHalves>(sum);
  const auto x = std::bit_cast<IntHalves>(a);
  const auto y = std::bit_cast<IntHalves>(b);
  return std::bit_cast<__m512>(
      FloatHalves{dpbf16_half(s.low, x.low, y.low), dpbf16_half(s.high, x.high, y.high)});
}

// VCVTNEPS2BF16: nearest even, subnormals become zero, NaN becomes quiet; MXCSR not consulted.
inline uint16_t to_bf16(float value) {
  const auto u = std::bit_cast<uint32_t>(value);
  const auto high = static_cast<uint16_t>(u >> 16);
  if ((u & 0x7F800000U) == 0) return high & 0x8000U;
  if ((u & 0x7FFFFFFFU) > 0x7F800000U) return high | 0x40U;
  return static_cast<uint16_t>((u + 0x7FFFU + (u >> 16 & 1U)) >> 16);
}

// Nearest even; what does not fit is the integer indefinite, as CVTPS2DQ gives.
inline int32_t to_int(float value) {
  return value >= -0x1p31F && value < 0x1p31F ? static_cast<int32_t>(std::nearbyint(value))
                                              : INT32_MIN;
}
inline int32_t to_int_truncating(float value) {
  return value >= -0x1p31F && value < 0x1p31F ? static_cast<int32_t>(value) : INT32_MIN;
}

// VGETEXPPS: floor(log2 |v|) as a float; subnormals are normalised.
inline float exponent_of(float v) {
  if (std::isnan(v)) return v;
  if (std::isinf(v)) return std::fabs(v);
  return v == 0 ? -HUGE_VALF : static_cast<float>(std::ilogb(v));
}

template <class T>
__m512i gather(__m512i index, const void* base, int scale) {
  const auto at = lanes<int32_t>(index);
  std::array<T, 16> out{};
  for (size_t i = 0; i < 16; ++i) {
    std::memcpy(&out[i], static_cast<const char*>(base) + int64_t{at[i]} * scale, sizeof(T));
  }
  return vector<__m512i>(out);
}

template <class V>
__m512 f16_to_f32(V v) {
  const auto half = std::bit_cast<ShortHalves>(v);
  return std::bit_cast<__m512>(FloatHalves{_mm256_cvtph_ps(half.low), _mm256_cvtph_ps(half.high)});
}
template <int kRounding>
__m256i f32_to_f16(__m512 v) {
  const auto half = std::bit_cast<FloatHalves>(v);
  return std::bit_cast<__m256i>(ShortHalves{_mm256_cvtps_ph(half.low, kRounding & 7),
                                            _mm256_cvtps_ph(half.high, kRounding & 7)});
}
inline __m256 float_half(__m512 v, int which) {
  const auto half = std::bit_cast<FloatHalves>(v);
  return which == 0 ? half.low : half.high;
}

// Two f32 vectors to 32 bfloat16, `low` in the lower half.
inline __m512bh cvtne2(__m512 high, __m512 low) {
  const auto a = lanes<float>(low);
  const auto b = lanes<float>(high);
  std::array<uint16_t, 32> out{};
  for (size_t i = 0; i < 16; ++i) {
    out[i] = to_bf16(a[i]);
    out[i + 16] = to_bf16(b[i]);
  }
  return vector<__m512bh>(out);
}

}  // namespace octet::simde_shim

#include "simde_shim_names.h"
