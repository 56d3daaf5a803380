#pragma once
// Functions of eight floats for the AVX2 kernels: exponential, sums, and the conversions of KV and
// quantised elements. Everything here is always inlined into a region of the including file.
#include <cstring>

#include "kernels/cpu/intrinsics.h"
#include "kernels/cpu/kv_codec.h"
#include "op/isa.h"

OCTET_ISA_BEGIN("avx2,fma,f16c")
namespace octet::cpu {

// exp(x) within 0.71 units of 2^-23 of the result, relative (measured over every float); 0 below
// -86.5, where results come near the subnormal numbers that processors are slow with; infinity
// above 88.72; NaN stays NaN. With x = n ln 2 + r, |r| <= ln 2 / 2, exp(r) is 1 + r + r^2 q(r); q
// has degree 4 and is minimax for the relative error (3.2e-9), rounded coefficient by coefficient.
OCTET_ALWAYS_INLINE __m256 exp_avx2(__m256 x) {
  const __m256 low = _mm256_set1_ps(-86.5F);
  const __m256 high = _mm256_set1_ps(89.0F);  // exp is infinity
  const __m256 tiny = _mm256_cmp_ps(x, low, _CMP_LT_OQ);
  // The second operand is what MAXPS and MINPS return when one is NaN.
  x = _mm256_min_ps(high, _mm256_max_ps(low, x));
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(0x1.715476p+0F)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  // ln 2 in two parts; the first has 12 bits, so n times it is exact.
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.62ep-1F), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.0bfbe8p-15F), r);
  __m256 q = _mm256_set1_ps(0x1.6a50bep-10F);
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(0x1.123976p-7F));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(0x1.5558acp-5F));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(0x1.555492p-3F));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(0x1.fffffcp-2F));
  const __m256 tail = _mm256_fmadd_ps(_mm256_mul_ps(r, r), q, r);
  const __m256 mantissa = _mm256_add_ps(tail, _mm256_set1_ps(1.0F));
  // 2^(n - 1) is normal for every n, and doubling overflows where exp does.
  const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(126));
  const __m256 half = _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
  const __m256 result = _mm256_mul_ps(mantissa, half);
  return _mm256_andnot_ps(tiny, _mm256_add_ps(result, result));
}

// The largest of eight values; NaN is passed over when there is a number.
OCTET_ALWAYS_INLINE float max_avx2(__m256 v) {
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_shuffle_ps(m, m, 1)));
}

// The largest of eight signed integers.
OCTET_ALWAYS_INLINE int32_t max_epi32_avx2(__m256i v) {
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4E));
  return _mm_cvtsi128_si32(_mm_max_epi32(m, _mm_shuffle_epi32(m, 0xB1)));
}

// The sum of eight values, as a tree.
OCTET_ALWAYS_INLINE float sum_avx2(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}

OCTET_ALWAYS_INLINE double sum_pd_avx2(__m256d v) {
  const __m128d s = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return _mm_cvtsd_f64(_mm_add_sd(s, _mm_unpackhi_pd(s, s)));
}

// v's eight values added to four double sums.
OCTET_ALWAYS_INLINE __m256d add_pd_avx2(__m256d sums, __m256 v) {
  sums = _mm256_add_pd(sums, _mm256_cvtps_pd(_mm256_castps256_ps128(v)));
  return _mm256_add_pd(sums, _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)));
}

// All bits set in the first `count` lanes: for masked loads and stores of a row's end.
OCTET_ALWAYS_INLINE __m256i lanes_avx2(int64_t count) {
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), index);
}

// The first `count` of eight floats at p, zeros after them; all of them from 8 on. Nothing beyond
// is read. Whole vectors take the plain instruction: masked ones are slow on some processors.
OCTET_ALWAYS_INLINE __m256 load_lanes_avx2(const float* p, int64_t count) {
  return count >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, lanes_avx2(count));
}

// Stores the first `count` of eight floats; all of them from 8 on.
OCTET_ALWAYS_INLINE void store_lanes_avx2(float* p, __m256 v, int64_t count) {
  if (count >= 8) {
    _mm256_storeu_ps(p, v);
  } else {
    _mm256_maskstore_ps(p, lanes_avx2(count), v);
  }
}

// bfloat16 bits of eight floats in the low halves of the lanes: f32_to_bf16() of num/bf16.h.
OCTET_ALWAYS_INLINE __m256i bf16_bits_avx2(__m256 v) {
  const __m256i u = _mm256_castps_si256(v);
  const __m256i high = _mm256_srli_epi32(u, 16);
  const __m256i even = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7FFF)), even), 16);
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(rounded, quiet, nan);
}

// round_to_bf16() of eight floats.
OCTET_ALWAYS_INLINE __m256 round_bf16_avx2(__m256 v) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(bf16_bits_avx2(v), 16));
}

// f32_to_f8() of num/f8.h for eight floats, one code in each lane. E4M3 or E5M2.
template <DType kType>
OCTET_ALWAYS_INLINE __m256i f8_codes_avx2(__m256 v) {
  constexpr int kManBits = kType == DType::F8E4M3 ? 3 : 2;
  constexpr int kBias = kType == DType::F8E4M3 ? 7 : 15;
  constexpr int kDrop = 23 - kManBits;
  const __m256i sign_mask = _mm256_set1_epi32(static_cast<int>(0x80000000U));
  const __m256i u = _mm256_castps_si256(v);
  const __m256 magnitude =
      _mm256_min_ps(_mm256_castsi256_ps(_mm256_andnot_si256(sign_mask, u)),
                    _mm256_set1_ps(static_cast<float>(info(kType).max_finite)));
  const __m256i m = _mm256_castps_si256(magnitude);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(m, kDrop), _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_add_epi32(_mm256_add_epi32(m, _mm256_set1_epi32((1 << (kDrop - 1)) - 1)), odd);
  const __m256i normal = _mm256_sub_epi32(_mm256_srli_epi32(rounded, kDrop),
                                          _mm256_set1_epi32((127 - kBias) << kManBits));
  // Below the smallest normal number the spacing is constant: adding 2^23 spacings rounds to it.
  const __m256 magic =
      _mm256_castsi256_ps(_mm256_set1_epi32((127 + 1 - kBias - kManBits + 23) << 23));
  const __m256i subnormal = _mm256_sub_epi32(_mm256_castps_si256(_mm256_add_ps(magnitude, magic)),
                                             _mm256_castps_si256(magic));
  const __m256i least_normal = _mm256_set1_epi32((127 + 1 - kBias) << 23);
  __m256i code = _mm256_blendv_epi8(normal, subnormal, _mm256_cmpgt_epi32(least_normal, m));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  code = _mm256_blendv_epi8(code, _mm256_set1_epi32(kType == DType::F8E4M3 ? 0x7F : 0x7E), nan);
  return _mm256_or_si256(code, _mm256_srli_epi32(_mm256_and_si256(u, sign_mask), 24));
}

// Low bytes of four vectors of eight lanes as 32 bytes in order.
OCTET_ALWAYS_INLINE __m256i pack_bytes_avx2(__m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i words = _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d));
  return _mm256_permutevar8x32_epi32(words, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Low halves of two vectors of eight lanes as 16 halves in order.
OCTET_ALWAYS_INLINE __m256i pack_halves_avx2(__m256i a, __m256i b) {
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xD8);
}

// Eight stored KV elements as floats, exact.
template <DType kType>
OCTET_ALWAYS_INLINE __m256 load_kv_avx2(const KvElement<kType>* p) {
  if constexpr (kType == DType::F32) {
    return _mm256_loadu_ps(p);
  } else if constexpr (kType == DType::F16) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  } else if constexpr (kType == DType::BF16) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  } else if constexpr (kType == DType::F8E5M2) {
    // The upper half of a binary16, NaN and infinity included.
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return _mm256_cvtph_ps(_mm_unpacklo_epi8(_mm_setzero_si128(), bytes));
  } else {
    // Exponent and mantissa moved into place of a binary16 are the value times 2^-8. Through
    // float32 directly, subnormal codes would be subnormal operands, which processors are slow
    // with.
    const __m128i code = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    const __m128i seven = _mm_set1_epi16(0x7F);
    const __m128i magnitude = _mm_and_si128(code, seven);
    const __m128i sign = _mm_slli_epi16(_mm_andnot_si128(seven, code), 8);
    const __m128i nan = _mm_cmpeq_epi16(magnitude, seven);
    const __m128i half = _mm_or_si128(_mm_or_si128(sign, nan), _mm_slli_epi16(magnitude, 7));
    return _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256.0F));
  }
}

// `count` < 8 stored elements as floats, zeros after them; nothing beyond them is read.
template <DType kType>
OCTET_ALWAYS_INLINE __m256 load_kv_tail_avx2(const KvElement<kType>* p, int64_t count) {
  KvElement<kType> whole[8] = {};
  std::memcpy(whole, p, static_cast<size_t>(count) * sizeof(whole[0]));
  return load_kv_avx2<kType>(whole);
}

// Stores eight floats as KV elements, rounded as kv_encode() does.
template <DType kType>
OCTET_ALWAYS_INLINE void store_kv_avx2(KvElement<kType>* p, __m256 v) {
  if constexpr (kType == DType::F32) {
    _mm256_storeu_ps(p, v);
  } else if constexpr (kType == DType::F16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  } else if constexpr (kType == DType::BF16) {
    const __m256i bits = bf16_bits_avx2(v);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm256_castsi256_si128(pack_halves_avx2(bits, bits)));
  } else {
    const __m256i codes = f8_codes_avx2<kType>(v);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p),
                     _mm256_castsi256_si128(pack_bytes_avx2(codes, codes, codes, codes)));
  }
}

// The same for the first `count` of eight floats; all of them from 8 on.
template <DType kType>
OCTET_ALWAYS_INLINE void store_kv_lanes_avx2(KvElement<kType>* p, __m256 v, int64_t count) {
  if (count >= 8) {
    store_kv_avx2<kType>(p, v);
  } else {
    KvElement<kType> whole[8];
    store_kv_avx2<kType>(whole, v);
    std::memcpy(p, whole, static_cast<size_t>(count) * sizeof(whole[0]));
  }
}

}  // namespace octet::cpu
OCTET_ISA_END
