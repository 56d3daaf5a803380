#pragma once
// Functions of sixteen floats for the AVX-512 kernels of the operations beside linear: the
// exponential, and stored KV elements as floats. Everything here is always inlined into a region of
// the including file.
#include <cstring>

#include "kernels/cpu/intrinsics.h"
#include "kernels/cpu/kv_codec.h"
#include "op/isa.h"

OCTET_ISA_BEGIN("avx512f,avx512bw,avx512vl,avx512dq")
namespace octet::cpu {

// exp(x) as exp_avx2() of vector_math_avx2.h computes it, bit for bit.
OCTET_ALWAYS_INLINE __m512 exp_avx512(__m512 x) {
  const __m512 low = _mm512_set1_ps(-86.5F);
  const __m512 high = _mm512_set1_ps(89.0F);
  const __mmask16 tiny = _mm512_cmp_ps_mask(x, low, _CMP_LT_OQ);
  x = _mm512_min_ps(high, _mm512_max_ps(low, x));
  const __m512i whole = _mm512_cvtps_epi32(_mm512_mul_ps(x, _mm512_set1_ps(0x1.715476p+0F)));
  const __m512 n = _mm512_cvtepi32_ps(whole);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.62ep-1F), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.0bfbe8p-15F), r);
  __m512 q = _mm512_set1_ps(0x1.6a50bep-10F);
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(0x1.123976p-7F));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(0x1.5558acp-5F));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(0x1.555492p-3F));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(0x1.fffffcp-2F));
  const __m512 tail = _mm512_fmadd_ps(_mm512_mul_ps(r, r), q, r);
  const __m512 mantissa = _mm512_add_ps(tail, _mm512_set1_ps(1.0F));
  const __m512 half =
      _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(whole, _mm512_set1_epi32(126)), 23));
  const __m512 result = _mm512_mul_ps(mantissa, half);
  return _mm512_mask_mov_ps(_mm512_add_ps(result, result), tiny, _mm512_setzero_ps());
}

// The first `count` lanes, all of them from 16 on, none up to 0.
OCTET_ALWAYS_INLINE __mmask16 lanes_avx512(int64_t count) {
  if (count >= 16) return 0xFFFF;
  return static_cast<__mmask16>(count <= 0 ? 0U : (1U << static_cast<unsigned>(count)) - 1U);
}

// Sixteen stored KV elements as floats, exact.
template <DType kType>
OCTET_ALWAYS_INLINE __m512 load_kv_avx512(const KvElement<kType>* p) {
  if constexpr (kType == DType::F32) {
    return _mm512_loadu_ps(p);
  } else if constexpr (kType == DType::F16) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  } else if constexpr (kType == DType::BF16) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
  } else {
    const __m256i code = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    // The upper half of a binary16, NaN and infinity included.
    if constexpr (kType == DType::F8E5M2) return _mm512_cvtph_ps(_mm256_slli_epi16(code, 8));
    // Exponent and mantissa moved into place of a binary16 are the value times 2^-8.
    const __m256i seven = _mm256_set1_epi16(0x7F);
    const __m256i magnitude = _mm256_and_si256(code, seven);
    const __m256i sign = _mm256_slli_epi16(_mm256_andnot_si256(seven, code), 8);
    const __m256i nan = _mm256_cmpeq_epi16(magnitude, seven);
    const __m256i half =
        _mm256_or_si256(_mm256_or_si256(sign, nan), _mm256_slli_epi16(magnitude, 7));
    return _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(256.0F));
  }
}

// `count` < 16 stored elements as floats, zeros after them; nothing beyond them is read.
template <DType kType>
OCTET_ALWAYS_INLINE __m512 load_kv_tail_avx512(const KvElement<kType>* p, int64_t count) {
  KvElement<kType> whole[16] = {};
  std::memcpy(whole, p, static_cast<size_t>(count) * sizeof(whole[0]));
  return load_kv_avx512<kType>(whole);
}

}  // namespace octet::cpu
OCTET_ISA_END
