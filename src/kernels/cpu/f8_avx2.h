#pragma once
// Element types of weights and of quantised inputs as AVX2 code reads them: 32 elements at a time
// become four vectors of eight floats, exactly, times 1 / kUnit.
//
// Lanes of the four vectors. Paired types: evens of elements 0-15, odds of 0-15, evens of 16-31,
// odds of 16-31, because 16-bit halves of words split without a shuffle. Others: as they lie.
//
// E4M3 goes through binary16: shifting the code by one gives the binary16 bits of value / 256 for
// every finite code, subnormals included, and vcvtph2ps takes binary16 subnormals at full speed on
// every processor. (Placing the code in float32 bits is 1.6 times faster on Zen 3, but makes
// float32 subnormals, and an FMA with one costs about 200 cycles on Intel processors.) The NaN
// codes become 480 / 256 that way, so a Watch looks for them.
#include <cstdint>
#include <cstring>

#include "kernels/cpu/intrinsics.h"
#include "num/dtype.h"
#include "op/isa.h"

namespace octet::avx2 {

// Elements that are decoded together.
inline constexpr int64_t kStep = 32;

// The lane-order position of element i of a step of a paired type.
constexpr int64_t paired_position(int64_t i) {
  return i / 16 * 16 + i % 2 * 8 + i % 16 / 2;
}

// Four vectors of floats: one step.
struct Step {
  __m256 v[4];
};

OCTET_ISA_BEGIN("avx2,fma,f16c")

// Bits of binary16 in even and odd 16-bit lanes to floats.
OCTET_ALWAYS_INLINE Step widen_f16(__m256i even, __m256i odd) {
  return {{_mm256_cvtph_ps(_mm256_castsi256_si128(even)),
           _mm256_cvtph_ps(_mm256_castsi256_si128(odd)),
           _mm256_cvtph_ps(_mm256_extracti128_si256(even, 1)),
           _mm256_cvtph_ps(_mm256_extracti128_si256(odd, 1))}};
}

// Looks for NaN codes in everything that is decoded. Types that decode NaN by themselves ignore it.
struct Watch {
  __m256i largest;  // of code & 0x7F, per byte

  bool saw_e4m3_nan() const {
    return _mm256_movemask_epi8(_mm256_cmpeq_epi8(largest, _mm256_set1_epi8(0x7F))) != 0;
  }
};

struct E4m3 {
  using Element = uint8_t;
  static constexpr DType kDType = DType::F8E4M3;
  static constexpr bool kPaired = true;
  static constexpr float kUnit = 256;
  static constexpr bool kWatched = true;

  static OCTET_ALWAYS_INLINE Step decode(const uint8_t* p, Watch& watch) {
    const __m256i keep = _mm256_set1_epi16(static_cast<int16_t>(0xBF80));
    const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    watch.largest = _mm256_max_epu8(watch.largest, _mm256_and_si256(codes, _mm256_set1_epi8(0x7F)));
    const __m256i odd = _mm256_and_si256(_mm256_srai_epi16(codes, 1), keep);
    const __m256i even = _mm256_and_si256(_mm256_srai_epi16(_mm256_slli_epi16(codes, 8), 1), keep);
    return widen_f16(even, odd);
  }
};

// E5M2 is the upper half of binary16, infinities and NaN included.
struct E5m2 {
  using Element = uint8_t;
  static constexpr DType kDType = DType::F8E5M2;
  static constexpr bool kPaired = true;
  static constexpr float kUnit = 1;
  static constexpr bool kWatched = false;

  static OCTET_ALWAYS_INLINE Step decode(const uint8_t* p, Watch&) {
    const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return widen_f16(_mm256_slli_epi16(codes, 8),
                     _mm256_and_si256(codes, _mm256_set1_epi16(static_cast<int16_t>(0xFF00))));
  }
};

struct Bf16 {
  using Element = uint16_t;
  static constexpr DType kDType = DType::BF16;
  static constexpr bool kPaired = true;
  static constexpr float kUnit = 1;
  static constexpr bool kWatched = false;

  static OCTET_ALWAYS_INLINE Step decode(const uint16_t* p, Watch&) {
    const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xFFFF0000U));
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 16));
    return {{_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)),
             _mm256_castsi256_ps(_mm256_and_si256(a, upper)),
             _mm256_castsi256_ps(_mm256_slli_epi32(b, 16)),
             _mm256_castsi256_ps(_mm256_and_si256(b, upper))}};
  }
};

struct F16 {
  using Element = uint16_t;
  static constexpr DType kDType = DType::F16;
  static constexpr bool kPaired = false;
  static constexpr float kUnit = 1;
  static constexpr bool kWatched = false;

  static OCTET_ALWAYS_INLINE Step decode(const uint16_t* p, Watch&) {
    const auto* q = reinterpret_cast<const __m128i*>(p);
    return {{_mm256_cvtph_ps(_mm_loadu_si128(q)), _mm256_cvtph_ps(_mm_loadu_si128(q + 1)),
             _mm256_cvtph_ps(_mm_loadu_si128(q + 2)), _mm256_cvtph_ps(_mm_loadu_si128(q + 3))}};
  }
};

struct F32 {
  using Element = float;
  static constexpr DType kDType = DType::F32;
  static constexpr bool kPaired = false;
  static constexpr float kUnit = 1;
  static constexpr bool kWatched = false;

  static OCTET_ALWAYS_INLINE Step decode(const float* p, Watch&) {
    return {{_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8), _mm256_loadu_ps(p + 16),
             _mm256_loadu_ps(p + 24)}};
  }
};

// The first `count` < kStep elements at p, the rest of the step zero. Reads nothing behind them.
template <class F>
OCTET_ALWAYS_INLINE Step decode_part(const typename F::Element* p, int64_t count, Watch& watch) {
  alignas(32) typename F::Element padded[kStep] = {};
  std::memcpy(padded, p, static_cast<size_t>(count) * sizeof padded[0]);
  return F::decode(padded, watch);
}

// Lane sums of four vectors: element i is the sum of the lanes of the i-th.
OCTET_ALWAYS_INLINE __m128 sum_lanes(__m256 a, __m256 b, __m256 c, __m256 d) {
  const __m256 quads = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
  return _mm_add_ps(_mm256_castps256_ps128(quads), _mm256_extractf128_ps(quads, 1));
}

OCTET_ISA_END

// True for the codes of E4M3 that mean NaN.
constexpr bool is_e4m3_nan(uint8_t code) {
  return (code & 0x7F) == 0x7F;
}

}  // namespace octet::avx2
