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

// The instructions that a kernel file may use: it defines OCTET_LINEAR_ISA as one of these before
// it includes any of the linear_*_avx512.h headers, whose code is compiled for exactly those.
#define OCTET_ISA_AVX512 OCTET_ISA_F8_AVX512
#define OCTET_ISA_AVX512BF16 OCTET_ISA_F8_AVX512 ",avx512bf16"
#if !defined(OCTET_LINEAR_ISA)
#error "define OCTET_LINEAR_ISA before including this header"
#endif

namespace octet::avx512 {

OCTET_ISA_BEGIN(OCTET_LINEAR_ISA)

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

// 64 bytes in a register: g++ 12 would repeat a load for each of its uses.
OCTET_ALWAYS_INLINE __m512i load_once(const void* p) {
  __m512i v = _mm512_loadu_si512(p);
#if !defined(OCTET_EMULATED)
  __asm__("" : "+v"(v));
#endif
  return v;
}

// Asks for the lines of a chunk `bytes` after p; the address need not exist.
template <class Element>
OCTET_ALWAYS_INLINE void prefetch_chunk(const Element* p, int64_t bytes) {
  OCTET_UNROLL
  for (int64_t line = 0; line < kChunk * static_cast<int64_t>(sizeof(Element)); line += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(p) + bytes + line, _MM_HINT_T0);
  }
}

OCTET_ISA_END

}  // namespace octet::avx512
