#pragma once
// Formats whose products are taken by vdpbf16ps. On AMD it has twice the rate of an f32
// multiply-add, on Sapphire Rapids half of it.
#define OCTET_LINEAR_ISA OCTET_ISA_AVX512BF16
#include "kernels/cpu/linear_run_avx512.h"

namespace octet::avx512 {

OCTET_ISA_BEGIN(OCTET_LINEAR_ISA)

// sum + x . w over 16 lanes, two products each, by vdpbf16ps: the odd product is added first, each
// addition rounds to nearest even, subnormal operands and results count as zero whatever MXCSR
// says.
struct Bf16Dot {
  static constexpr int kVectors = 2;
  static constexpr int64_t kSpanChunks = 32;

  static OCTET_ALWAYS_INLINE __m512 multiply_add(__m512i w, __m512i x, __m512 sum) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(w), reinterpret_cast<__m512bh>(x));
  }
};

// 8-bit floats, weights or input, as bfloat16 in the order of F8Decoder.
struct F8ToBf16 : Bf16Dot {
  using Element = uint8_t;

  explicit F8ToBf16(DType dtype) : decoder(f8_tables(dtype)) {}

  OCTET_ALWAYS_INLINE void load(const Element* p, __m512i (&v)[kVectors]) const {
    decoder.decode(load_once(p), v[0], v[1]);
  }
  OCTET_ALWAYS_INLINE void load(const Element* p, uint64_t mask, __m512i (&v)[kVectors]) const {
    decoder.decode(_mm512_maskz_loadu_epi8(mask, p), v[0], v[1]);
  }

  F8Decoder decoder;
};

// bfloat16 in the order of memory.
struct Bf16AsStored : Bf16Dot {
  using Element = uint16_t;

  explicit Bf16AsStored(DType) {}

  OCTET_ALWAYS_INLINE void load(const Element* p, __m512i (&v)[kVectors]) const {
    v[0] = _mm512_loadu_si512(p);
    v[1] = _mm512_loadu_si512(p + 32);
  }
  OCTET_ALWAYS_INLINE void load(const Element* p, uint64_t mask, __m512i (&v)[kVectors]) const {
    v[0] = _mm512_maskz_loadu_epi16(static_cast<uint32_t>(mask), p);
    v[1] = _mm512_maskz_loadu_epi16(static_cast<uint32_t>(mask >> 32), p + 32);
  }
};

// bfloat16 in the order of F8Decoder: the input of kernels with 8-bit weights.
struct Bf16LikeF8 : Bf16AsStored {
  using Bf16AsStored::Bf16AsStored;

  OCTET_ALWAYS_INLINE void load(const Element* p, __m512i (&v)[kVectors]) const {
    Bf16AsStored::load(p, v);
    order_like_f8(v[0], v[1], v[0], v[1]);
  }
  OCTET_ALWAYS_INLINE void load(const Element* p, uint64_t mask, __m512i (&v)[kVectors]) const {
    Bf16AsStored::load(p, mask, v);
    order_like_f8(v[0], v[1], v[0], v[1]);
  }
};

OCTET_ISA_END

}  // namespace octet::avx512
