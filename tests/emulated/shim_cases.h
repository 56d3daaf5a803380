// No include guard: compiled twice, once with the instructions of the machine and once with their
// emulation, into OCTET_SHIM_CASES, a namespace. Each case reads three vectors of 64 bytes and
// writes one.
#include <cstdint>
#include <cstring>

#include "op/isa.h"
#include "tests/emulated/shim_case.h"

#define OCTET_SHIM_CASE(function, expression)                        \
  void function(const uint8_t* in, uint8_t* out) {                   \
    [[maybe_unused]] const __m512i a = _mm512_loadu_si512(in);       \
    [[maybe_unused]] const __m512i b = _mm512_loadu_si512(in + 64);  \
    [[maybe_unused]] const __m512i c = _mm512_loadu_si512(in + 128); \
    [[maybe_unused]] const __m512 fa = _mm512_castsi512_ps(a);       \
    [[maybe_unused]] const __m512 fb = _mm512_castsi512_ps(b);       \
    [[maybe_unused]] const __m512 fc = _mm512_castsi512_ps(c);       \
    [[maybe_unused]] const __m256i half = _mm512_castsi512_si256(a); \
    uint64_t mask;                                                   \
    std::memcpy(&mask, in + 128, sizeof mask);                       \
    const auto result = expression;                                  \
    std::memcpy(out, &result, sizeof result);                        \
  }

#define OCTET_SHIM_STORE(function, call)                       \
  void function(const uint8_t* in, uint8_t* out) {             \
    const __m512i a = _mm512_loadu_si512(in);                  \
    [[maybe_unused]] const __m512 fa = _mm512_castsi512_ps(a); \
    uint64_t mask;                                             \
    std::memcpy(&mask, in + 128, sizeof mask);                 \
    std::memcpy(out, in + 64, 64);                             \
    call;                                                      \
  }

namespace octet::OCTET_SHIM_CASES {
namespace {

OCTET_ISA_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi,avx2,fma,f16c")

OCTET_SHIM_CASE(dpbf16_ps,
                _mm512_dpbf16_ps(fc, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b)))
OCTET_SHIM_CASE(cvtneps_pbh, _mm512_cvtneps_pbh(fa))
OCTET_SHIM_CASE(cvtne2ps_pbh, _mm512_cvtne2ps_pbh(fa, fb))
OCTET_SHIM_CASE(cvtph_ps, _mm512_cvtph_ps(half))
OCTET_SHIM_CASE(cvtps_ph, _mm512_cvtps_ph(fa, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
OCTET_SHIM_CASE(cvtepu8_epi16, _mm512_cvtepu8_epi16(half))
OCTET_SHIM_CASE(cvtepu8_epi32, _mm512_cvtepu8_epi32(_mm256_castsi256_si128(half)))
OCTET_SHIM_CASE(cvtepi8_epi32, _mm512_cvtepi8_epi32(_mm256_castsi256_si128(half)))
OCTET_SHIM_CASE(cvtepu16_epi32, _mm512_cvtepu16_epi32(half))
OCTET_SHIM_CASE(cvtepi16_epi32, _mm512_cvtepi16_epi32(half))
OCTET_SHIM_CASE(cvtepi32_epi8, _mm512_cvtepi32_epi8(a))
OCTET_SHIM_CASE(cvtepi32_epi16, _mm512_cvtepi32_epi16(a))
OCTET_SHIM_CASE(cvtepi32_ps, _mm512_cvtepi32_ps(a))
OCTET_SHIM_CASE(cvtps_epi32, _mm512_cvtps_epi32(fa))
OCTET_SHIM_CASE(cvttps_epi32, _mm512_cvttps_epi32(fa))
OCTET_SHIM_CASE(cvtps_pd, _mm512_cvtps_pd(_mm512_castps512_ps256(fa)))
OCTET_SHIM_CASE(cvtpd_ps, _mm512_cvtpd_ps(_mm512_castsi512_pd(a)))
OCTET_SHIM_CASE(srai_epi32, _mm512_srai_epi32(a, 7))
OCTET_SHIM_CASE(slli_epi32, _mm512_slli_epi32(a, 16))
OCTET_SHIM_CASE(shuffle_f32x4, _mm512_shuffle_f32x4(fa, fb, 0xDD))
OCTET_SHIM_CASE(shuffle_i32x4, _mm512_shuffle_i32x4(a, b, 0x88))
OCTET_SHIM_CASE(extractf32x4_ps, _mm512_extractf32x4_ps(fa, 2))
OCTET_SHIM_CASE(extractf32x8_ps, _mm512_extractf32x8_ps(fa, 1))
OCTET_SHIM_CASE(permutex2var_epi8, _mm512_permutex2var_epi8(a, b, c))
OCTET_SHIM_CASE(permutexvar_ps, _mm512_permutexvar_ps(a, fb))
OCTET_SHIM_CASE(ternarylogic_epi32, _mm512_ternarylogic_epi32(a, b, c, 0xF8))
OCTET_SHIM_CASE(unpacklo_epi8, _mm512_unpacklo_epi8(a, b))
OCTET_SHIM_CASE(unpackhi_epi8, _mm512_unpackhi_epi8(a, b))
OCTET_SHIM_CASE(unpacklo_ps, _mm512_unpacklo_ps(fa, fb))
OCTET_SHIM_CASE(unpackhi_ps, _mm512_unpackhi_ps(fa, fb))
OCTET_SHIM_CASE(unpacklo_pd, _mm512_unpacklo_pd(_mm512_castps_pd(fa), _mm512_castps_pd(fb)))
OCTET_SHIM_CASE(unpackhi_pd, _mm512_unpackhi_pd(_mm512_castps_pd(fa), _mm512_castps_pd(fb)))
OCTET_SHIM_CASE(fmadd_ps, _mm512_fmadd_ps(fa, fb, fc))
OCTET_SHIM_CASE(reduce_add_ps, _mm512_reduce_add_ps(fa))
// Which operand survives a NaN or a zero of another sign depends on the compiler's tree: the top
// bit of the exponent is cleared, and adding zero makes every zero positive.
OCTET_SHIM_CASE(reduce_max_ps, 0.0F + _mm512_reduce_max_ps(_mm512_castsi512_ps(_mm512_and_si512(
                                          a, _mm512_set1_epi32(static_cast<int>(0xBFFFFFFF))))))
OCTET_SHIM_CASE(reduce_min_ps, 0.0F + _mm512_reduce_min_ps(_mm512_castsi512_ps(_mm512_and_si512(
                                          a, _mm512_set1_epi32(static_cast<int>(0xBFFFFFFF))))))
OCTET_SHIM_CASE(reduce_add_pd, _mm512_reduce_add_pd(_mm512_castsi512_pd(a)))
OCTET_SHIM_CASE(reduce_add_epi32, _mm512_reduce_add_epi32(a))
OCTET_SHIM_CASE(reduce_max_epi32, _mm512_reduce_max_epi32(a))
OCTET_SHIM_CASE(getexp_ps, _mm512_getexp_ps(fa))
OCTET_SHIM_CASE(i32gather_ps,
                _mm512_i32gather_ps(_mm512_and_si512(a, _mm512_set1_epi32(31)), in, 4))
OCTET_SHIM_CASE(i32gather_epi32,
                _mm512_i32gather_epi32(_mm512_and_si512(a, _mm512_set1_epi32(31)), in, 4))
OCTET_SHIM_CASE(maskz_loadu_epi8, _mm512_maskz_loadu_epi8(mask, in))
OCTET_SHIM_CASE(maskz_loadu_epi16, _mm512_maskz_loadu_epi16(static_cast<uint32_t>(mask), in))
OCTET_SHIM_CASE(maskz_loadu_epi32, _mm512_maskz_loadu_epi32(static_cast<uint16_t>(mask), in))
OCTET_SHIM_CASE(maskz_loadu_ps, _mm512_maskz_loadu_ps(static_cast<uint16_t>(mask), in))
OCTET_SHIM_CASE(mask_loadu_ps, _mm512_mask_loadu_ps(fb, static_cast<uint16_t>(mask), in))
OCTET_SHIM_CASE(mm256_maskz_loadu_epi8, _mm256_maskz_loadu_epi8(static_cast<uint32_t>(mask), in))
OCTET_SHIM_CASE(mm_maskz_loadu_ps, _mm_maskz_loadu_ps(static_cast<uint8_t>(mask & 15), in))
OCTET_SHIM_STORE(mask_storeu_ps, _mm512_mask_storeu_ps(out, static_cast<uint16_t>(mask), fa))
OCTET_SHIM_STORE(mask_storeu_epi8, _mm512_mask_storeu_epi8(out, mask, a))
OCTET_SHIM_STORE(mask_storeu_epi16, _mm512_mask_storeu_epi16(out, static_cast<uint32_t>(mask), a))
OCTET_SHIM_STORE(mask_storeu_epi32, _mm512_mask_storeu_epi32(out, static_cast<uint16_t>(mask), a))
OCTET_SHIM_STORE(mm_mask_storeu_ps, _mm_mask_storeu_ps(out, static_cast<uint8_t>(mask & 15),
                                                       _mm512_castps512_ps128(fa)))

OCTET_ISA_END

#define OCTET_SHIM_ROW(function, lanes) \
  { #function, Lanes::lanes, function }
const ShimCase kCases[] = {
    OCTET_SHIM_ROW(dpbf16_ps, F32),          OCTET_SHIM_ROW(cvtneps_pbh, Bits),
    OCTET_SHIM_ROW(cvtne2ps_pbh, Bits),      OCTET_SHIM_ROW(cvtph_ps, F32),
    OCTET_SHIM_ROW(cvtps_ph, Bits),          OCTET_SHIM_ROW(cvtepu8_epi16, Bits),
    OCTET_SHIM_ROW(cvtepu8_epi32, Bits),     OCTET_SHIM_ROW(cvtepi8_epi32, Bits),
    OCTET_SHIM_ROW(cvtepu16_epi32, Bits),    OCTET_SHIM_ROW(cvtepi16_epi32, Bits),
    OCTET_SHIM_ROW(cvtepi32_epi8, Bits),     OCTET_SHIM_ROW(cvtepi32_epi16, Bits),
    OCTET_SHIM_ROW(cvtepi32_ps, F32),        OCTET_SHIM_ROW(cvtps_epi32, Bits),
    OCTET_SHIM_ROW(cvttps_epi32, Bits),      OCTET_SHIM_ROW(cvtps_pd, F64),
    OCTET_SHIM_ROW(cvtpd_ps, F32),           OCTET_SHIM_ROW(srai_epi32, Bits),
    OCTET_SHIM_ROW(slli_epi32, Bits),        OCTET_SHIM_ROW(shuffle_f32x4, Bits),
    OCTET_SHIM_ROW(shuffle_i32x4, Bits),     OCTET_SHIM_ROW(extractf32x4_ps, Bits),
    OCTET_SHIM_ROW(extractf32x8_ps, Bits),   OCTET_SHIM_ROW(permutex2var_epi8, Bits),
    OCTET_SHIM_ROW(permutexvar_ps, Bits),    OCTET_SHIM_ROW(ternarylogic_epi32, Bits),
    OCTET_SHIM_ROW(unpacklo_epi8, Bits),     OCTET_SHIM_ROW(unpackhi_epi8, Bits),
    OCTET_SHIM_ROW(unpacklo_ps, Bits),       OCTET_SHIM_ROW(unpackhi_ps, Bits),
    OCTET_SHIM_ROW(unpacklo_pd, Bits),       OCTET_SHIM_ROW(unpackhi_pd, Bits),
    OCTET_SHIM_ROW(fmadd_ps, F32),           OCTET_SHIM_ROW(reduce_add_ps, F32),
    OCTET_SHIM_ROW(reduce_max_ps, F32),      OCTET_SHIM_ROW(reduce_min_ps, F32),
    OCTET_SHIM_ROW(reduce_add_pd, F64),      OCTET_SHIM_ROW(reduce_add_epi32, Bits),
    OCTET_SHIM_ROW(reduce_max_epi32, Bits),  OCTET_SHIM_ROW(getexp_ps, F32),
    OCTET_SHIM_ROW(i32gather_ps, Bits),      OCTET_SHIM_ROW(i32gather_epi32, Bits),
    OCTET_SHIM_ROW(maskz_loadu_epi8, Bits),  OCTET_SHIM_ROW(maskz_loadu_epi16, Bits),
    OCTET_SHIM_ROW(maskz_loadu_epi32, Bits), OCTET_SHIM_ROW(maskz_loadu_ps, Bits),
    OCTET_SHIM_ROW(mask_loadu_ps, Bits),     OCTET_SHIM_ROW(mm256_maskz_loadu_epi8, Bits),
    OCTET_SHIM_ROW(mm_maskz_loadu_ps, Bits), OCTET_SHIM_ROW(mask_storeu_ps, Bits),
    OCTET_SHIM_ROW(mask_storeu_epi8, Bits),  OCTET_SHIM_ROW(mask_storeu_epi16, Bits),
    OCTET_SHIM_ROW(mask_storeu_epi32, Bits), OCTET_SHIM_ROW(mm_mask_storeu_ps, Bits),
};

}  // namespace

std::span<const ShimCase> cases() {
  return kCases;
}

}  // namespace octet::OCTET_SHIM_CASES
