#pragma once
// What the loops of linear_stream_avx512.h and linear_panel_avx512.h are templates over: how 64
// weights and 64 values of x become vectors, and how two vectors are multiplied and summed. Weights
// and Inputs of one kernel leave their values in the same order.
//   kVectors          vectors of 64 bytes that a chunk of 64 columns becomes
//   kSpanChunks       chunks after which partial sums are folded; a span of x for a tile of tokens
//                     and of four rows of weights fits the first-level cache
//   load(p, v), load(p, mask, v)   p: first element of the chunk; columns without a mask bit are 0
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/f8_avx512.h"
#include "kernels/cpu/intrinsics.h"
#include "kernels/cpu/linear_pieces.h"

#define OCTET_ISA_AVX512BF16 "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi"

namespace octet::avx512 {

OCTET_ISA_BEGIN(OCTET_ISA_AVX512BF16)

// Calls whole(c) for the whole chunks of a piece and part(c, mask) for a partial one at either end,
// in order.
template <class Whole, class Part>
OCTET_ALWAYS_INLINE void walk_chunks(const Piece& piece, const Whole& whole, const Part& part) {
  int64_t c = piece.chunk;
  const int64_t end = piece.chunk + piece.chunks;
  if (piece.first_mask != kWholeChunk) part(c++, piece.first_mask);
  const bool short_end = c < end && piece.last_mask != kWholeChunk;
  const int64_t whole_end = short_end ? end - 1 : end;
  for (; c < whole_end; ++c) whole(c);
  if (short_end) part(c, piece.last_mask);
}

// Asks for the lines of a chunk `bytes` after p; the address need not exist.
template <class Element>
OCTET_ALWAYS_INLINE void prefetch_chunk(const Element* p, int64_t bytes) {
  OCTET_UNROLL
  for (int64_t line = 0; line < kChunk * static_cast<int64_t>(sizeof(Element)); line += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(p) + bytes + line, _MM_HINT_T0);
  }
}

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
    __m512i codes = _mm512_loadu_si512(p);
#if !defined(OCTET_EMULATED)
    __asm__("" : "+v"(codes));  // one load: g++ 12 would repeat it for each of the three uses
#endif
    decoder.decode(codes, v[0], v[1]);
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
