#pragma once
// Formats whose products are taken by f32 fused multiply-adds: every product of a code, a bfloat16
// or a binary16 weight with a float input is exact before it is added.
#define OCTET_LINEAR_ISA OCTET_ISA_AVX512
#include "kernels/cpu/linear_run_avx512.h"

namespace octet::avx512 {

OCTET_ISA_BEGIN(OCTET_LINEAR_ISA)

// sum + x * w over 16 lanes.
struct F32Dot {
  static constexpr int kVectors = 4;
  static constexpr int64_t kSpanChunks = 16;

  static OCTET_ALWAYS_INLINE __m512 multiply_add(__m512i w, __m512i x, __m512 sum) {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(w), _mm512_castsi512_ps(x), sum);
  }
};

// 32 bfloat16 as floats: those with an even index, then those with an odd one.
OCTET_ALWAYS_INLINE void widen_bf16(__m512i bits, __m512i& even, __m512i& odd) {
  even = _mm512_slli_epi32(bits, 16);
  odd = _mm512_and_si512(bits, _mm512_set1_epi32(static_cast<int>(0xFFFF0000)));
}

// 8-bit floats, weights or input, in the order of F8Decoder with even and odd values apart.
struct F8ToF32 : F32Dot {
  using Element = uint8_t;

  explicit F8ToF32(DType dtype) : decoder(f8_tables(dtype)) {}

  OCTET_ALWAYS_INLINE void load(const Element* p, __m512i (&v)[kVectors]) const {
    decode(load_once(p), v);
  }
  OCTET_ALWAYS_INLINE void load(const Element* p, uint64_t mask, __m512i (&v)[kVectors]) const {
    decode(_mm512_maskz_loadu_epi8(mask, p), v);
  }
  OCTET_ALWAYS_INLINE void decode(__m512i codes, __m512i (&v)[kVectors]) const {
    __m512i first, second;
    decoder.decode(codes, first, second);
    widen_bf16(first, v[0], v[1]);
    widen_bf16(second, v[2], v[3]);
  }

  F8Decoder decoder;
};

// bfloat16 weights with even and odd values of each 32 apart.
struct Bf16ToF32 : F32Dot {
  using Element = uint16_t;

  explicit Bf16ToF32(DType) {}

  OCTET_ALWAYS_INLINE void load(const Element* p, __m512i (&v)[kVectors]) const {
    widen_bf16(_mm512_loadu_si512(p), v[0], v[1]);
    widen_bf16(_mm512_loadu_si512(p + 32), v[2], v[3]);
  }
  OCTET_ALWAYS_INLINE void load(const Element* p, uint64_t mask, __m512i (&v)[kVectors]) const {
    widen_bf16(_mm512_maskz_loadu_epi16(static_cast<uint32_t>(mask), p), v[0], v[1]);
    widen_bf16(_mm512_maskz_loadu_epi16(static_cast<uint32_t>(mask >> 32), p + 32), v[2], v[3]);
  }
};

// binary16 weights in the order of memory.
struct F16ToF32 : F32Dot {
  using Element = uint16_t;

  explicit F16ToF32(DType) {}

  static OCTET_ALWAYS_INLINE void widen(__m512i bits, __m512i& low, __m512i& high) {
    low = _mm512_castps_si512(_mm512_cvtph_ps(_mm512_castsi512_si256(bits)));
    high = _mm512_castps_si512(_mm512_cvtph_ps(_mm512_extracti64x4_epi64(bits, 1)));
  }
  OCTET_ALWAYS_INLINE void load(const Element* p, __m512i (&v)[kVectors]) const {
    widen(_mm512_loadu_si512(p), v[0], v[1]);
    widen(_mm512_loadu_si512(p + 32), v[2], v[3]);
  }
  OCTET_ALWAYS_INLINE void load(const Element* p, uint64_t mask, __m512i (&v)[kVectors]) const {
    widen(_mm512_maskz_loadu_epi16(static_cast<uint32_t>(mask), p), v[0], v[1]);
    widen(_mm512_maskz_loadu_epi16(static_cast<uint32_t>(mask >> 32), p + 32), v[2], v[3]);
  }
};

// float32 in the order of memory: weights, and the input of binary16 and float32 weights.
struct F32AsStored : F32Dot {
  using Element = float;

  explicit F32AsStored(DType) {}

  OCTET_ALWAYS_INLINE void load(const Element* p, __m512i (&v)[kVectors]) const {
    OCTET_UNROLL
    for (int i = 0; i < kVectors; ++i) v[i] = _mm512_loadu_si512(p + 16 * i);
  }
  OCTET_ALWAYS_INLINE void load(const Element* p, uint64_t mask, __m512i (&v)[kVectors]) const {
    OCTET_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      v[i] = _mm512_maskz_loadu_epi32(static_cast<uint16_t>(mask >> 16 * i), p + 16 * i);
    }
  }
};

// float32 input in the order of Bf16ToF32.
struct F32LikeBf16 : F32AsStored {
  using F32AsStored::F32AsStored;

  static OCTET_ALWAYS_INLINE void part(__m512i a, __m512i b, __m512i& even, __m512i& odd) {
    const __m512i evens =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odds = _mm512_or_si512(evens, _mm512_set1_epi32(1));
    even = _mm512_permutex2var_epi32(a, evens, b);
    odd = _mm512_permutex2var_epi32(a, odds, b);
  }
  static OCTET_ALWAYS_INLINE void order(__m512i (&v)[kVectors]) {
    const __m512i a = v[0], b = v[1], c = v[2], d = v[3];
    part(a, b, v[0], v[1]);
    part(c, d, v[2], v[3]);
  }
  OCTET_ALWAYS_INLINE void load(const Element* p, __m512i (&v)[kVectors]) const {
    F32AsStored::load(p, v);
    order(v);
  }
  OCTET_ALWAYS_INLINE void load(const Element* p, uint64_t mask, __m512i (&v)[kVectors]) const {
    F32AsStored::load(p, mask, v);
    order(v);
  }
};

// float32 input in the order of F8ToF32. With q the quarter of 16 values: v[0] = 16 q + {0 2 4 6},
// v[1] = 16 q + {1 3 5 7}, v[2] = 16 q + {8 10 12 14}, v[3] = 16 q + {9 11 13 15}.
struct F32LikeF8 : F32AsStored {
  using F32AsStored::F32AsStored;

  static OCTET_ALWAYS_INLINE void order(__m512i (&v)[kVectors]) {
    const __m512i apart = _mm512_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    OCTET_UNROLL
    for (int i = 0; i < kVectors; ++i) v[i] = _mm512_permutexvar_epi32(apart, v[i]);
    // A transpose of 4 x 4 quarters.
    const __m512i low01 = _mm512_shuffle_i32x4(v[0], v[1], 0x44);
    const __m512i low23 = _mm512_shuffle_i32x4(v[2], v[3], 0x44);
    const __m512i high01 = _mm512_shuffle_i32x4(v[0], v[1], 0xEE);
    const __m512i high23 = _mm512_shuffle_i32x4(v[2], v[3], 0xEE);
    v[0] = _mm512_shuffle_i32x4(low01, low23, 0x88);
    v[1] = _mm512_shuffle_i32x4(low01, low23, 0xDD);
    v[2] = _mm512_shuffle_i32x4(high01, high23, 0x88);
    v[3] = _mm512_shuffle_i32x4(high01, high23, 0xDD);
  }
  OCTET_ALWAYS_INLINE void load(const Element* p, __m512i (&v)[kVectors]) const {
    F32AsStored::load(p, v);
    order(v);
  }
  OCTET_ALWAYS_INLINE void load(const Element* p, uint64_t mask, __m512i (&v)[kVectors]) const {
    F32AsStored::load(p, mask, v);
    order(v);
  }
};

OCTET_ISA_END

}  // namespace octet::avx512
