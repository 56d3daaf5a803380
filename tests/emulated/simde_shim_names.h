#pragma once
// The names that kernel files use, bound to simde_shim.h. An intrinsic that a newer SIMDe brings is
// replaced as well, so that every version behaves the same.
#include "simde_shim.h"
// clang-format off

#define OCTET_SHIM ::octet::simde_shim

#undef _mm512_dpbf16_ps
#define _mm512_dpbf16_ps(sum, a, b) OCTET_SHIM::dpbf16(sum, a, b)
#undef _mm512_cvtneps_pbh
#define _mm512_cvtneps_pbh(v) OCTET_SHIM::map_lanes<__m256bh, uint16_t, float>(v, OCTET_SHIM::to_bf16)
#undef _mm512_cvtne2ps_pbh
#define _mm512_cvtne2ps_pbh(high, low) OCTET_SHIM::cvtne2(high, low)
#undef _mm512_cvtph_ps
#define _mm512_cvtph_ps(v) OCTET_SHIM::f16_to_f32(v)
#undef _mm512_cvtps_ph
#define _mm512_cvtps_ph(v, rounding) OCTET_SHIM::f32_to_f16<rounding>(v)

#undef _mm512_cvtepu8_epi16
#define _mm512_cvtepu8_epi16(v) OCTET_SHIM::map_lanes<__m512i, int16_t, uint8_t>(v, OCTET_SHIM::Convert<int16_t>{})
#undef _mm512_cvtepu8_epi32
#define _mm512_cvtepu8_epi32(v) OCTET_SHIM::map_lanes<__m512i, int32_t, uint8_t>(v, OCTET_SHIM::Convert<int32_t>{})
#undef _mm512_cvtepi8_epi32
#define _mm512_cvtepi8_epi32(v) OCTET_SHIM::map_lanes<__m512i, int32_t, int8_t>(v, OCTET_SHIM::Convert<int32_t>{})
#undef _mm512_cvtepu16_epi32
#define _mm512_cvtepu16_epi32(v) OCTET_SHIM::map_lanes<__m512i, int32_t, uint16_t>(v, OCTET_SHIM::Convert<int32_t>{})
#undef _mm512_cvtepi16_epi32
#define _mm512_cvtepi16_epi32(v) OCTET_SHIM::map_lanes<__m512i, int32_t, int16_t>(v, OCTET_SHIM::Convert<int32_t>{})
#undef _mm512_cvtepi32_epi8
#define _mm512_cvtepi32_epi8(v) OCTET_SHIM::map_lanes<__m128i, int8_t, int32_t>(v, OCTET_SHIM::Convert<int8_t>{})
#undef _mm512_cvtepi32_epi16
#define _mm512_cvtepi32_epi16(v) OCTET_SHIM::map_lanes<__m256i, int16_t, int32_t>(v, OCTET_SHIM::Convert<int16_t>{})
#undef _mm512_cvtepi32_ps
#define _mm512_cvtepi32_ps(v) OCTET_SHIM::map_lanes<__m512, float, int32_t>(v, OCTET_SHIM::Convert<float>{})
#undef _mm512_cvtps_epi32
#define _mm512_cvtps_epi32(v) OCTET_SHIM::map_lanes<__m512i, int32_t, float>(v, OCTET_SHIM::to_int)
#undef _mm512_cvttps_epi32
#define _mm512_cvttps_epi32(v) OCTET_SHIM::map_lanes<__m512i, int32_t, float>(v, OCTET_SHIM::to_int_truncating)
#undef _mm512_cvtps_pd
#define _mm512_cvtps_pd(v) OCTET_SHIM::map_lanes<__m512d, double, float>(v, OCTET_SHIM::Convert<double>{})
#undef _mm512_cvtpd_ps
#define _mm512_cvtpd_ps(v) OCTET_SHIM::map_lanes<__m256, float, double>(v, OCTET_SHIM::Convert<float>{})
#undef _mm512_srai_epi32
#define _mm512_srai_epi32(v, count) OCTET_SHIM::shift_right(v, count)

#undef _mm512_shuffle_f32x4
#define _mm512_shuffle_f32x4(a, b, order) simde_mm512_castsi512_ps(simde_mm512_shuffle_i32x4(simde_mm512_castps_si512(a), simde_mm512_castps_si512(b), order))
#undef _mm512_extractf32x8_ps
#define _mm512_extractf32x8_ps(v, half) OCTET_SHIM::float_half(v, half)
#undef _mm512_i32gather_ps
#define _mm512_i32gather_ps(index, base, scale) simde_mm512_castsi512_ps(OCTET_SHIM::gather<float>(index, base, scale))
#undef _mm512_i32gather_epi32
#define _mm512_i32gather_epi32(index, base, scale) OCTET_SHIM::gather<int32_t>(index, base, scale)

#undef _mm512_reduce_add_ps
#define _mm512_reduce_add_ps(v) OCTET_SHIM::reduce<float>(v, ::std::plus<float>{})
#undef _mm512_reduce_max_ps
#define _mm512_reduce_max_ps(v) OCTET_SHIM::reduce<float>(v, OCTET_SHIM::max_of)
#undef _mm512_reduce_min_ps
#define _mm512_reduce_min_ps(v) OCTET_SHIM::reduce<float>(v, OCTET_SHIM::min_of)
#undef _mm512_reduce_add_pd
#define _mm512_reduce_add_pd(v) OCTET_SHIM::reduce<double>(v, ::std::plus<double>{})
#undef _mm512_reduce_add_epi32
#define _mm512_reduce_add_epi32(v) static_cast<int32_t>(OCTET_SHIM::reduce<uint32_t>(v, ::std::plus<uint32_t>{}))
#undef _mm512_reduce_max_epi32
#define _mm512_reduce_max_epi32(v) OCTET_SHIM::reduce<int32_t>(v, OCTET_SHIM::larger)

#undef _mm512_getexp_ps
#define _mm512_getexp_ps(v) OCTET_SHIM::map_lanes<__m512, float, float>(v, OCTET_SHIM::exponent_of)
#undef _mm512_rcp14_ps
#define _mm512_rcp14_ps(v) OCTET_SHIM::map_lanes<__m512, float, float>(v, OCTET_SHIM::reciprocal)
#undef _mm512_rsqrt14_ps
#define _mm512_rsqrt14_ps(v) OCTET_SHIM::map_lanes<__m512, float, float>(v, OCTET_SHIM::reciprocal_root)
#undef _mm512_stream_si512
#define _mm512_stream_si512(memory, v) simde_mm512_store_si512(memory, v)

#undef _mm512_maskz_loadu_epi8
#define _mm512_maskz_loadu_epi8(mask, p) OCTET_SHIM::load_masked<__m512i, uint8_t>(simde_mm512_setzero_si512(), mask, p)
#undef _mm512_maskz_loadu_epi16
#define _mm512_maskz_loadu_epi16(mask, p) OCTET_SHIM::load_masked<__m512i, uint16_t>(simde_mm512_setzero_si512(), mask, p)
#undef _mm512_maskz_loadu_epi32
#define _mm512_maskz_loadu_epi32(mask, p) OCTET_SHIM::load_masked<__m512i, uint32_t>(simde_mm512_setzero_si512(), mask, p)
#undef _mm512_maskz_loadu_ps
#define _mm512_maskz_loadu_ps(mask, p) OCTET_SHIM::load_masked<__m512, float>(simde_mm512_setzero_ps(), mask, p)
#undef _mm512_mask_loadu_ps
#define _mm512_mask_loadu_ps(other, mask, p) OCTET_SHIM::load_masked<__m512, float>(other, mask, p)
#undef _mm512_mask_storeu_ps
#define _mm512_mask_storeu_ps(p, mask, v) OCTET_SHIM::store_masked<float>(p, mask, v)
#undef _mm512_mask_storeu_epi8
#define _mm512_mask_storeu_epi8(p, mask, v) OCTET_SHIM::store_masked<uint8_t>(p, mask, v)
#undef _mm512_mask_storeu_epi16
#define _mm512_mask_storeu_epi16(p, mask, v) OCTET_SHIM::store_masked<uint16_t>(p, mask, v)
#undef _mm512_mask_storeu_epi32
#define _mm512_mask_storeu_epi32(p, mask, v) OCTET_SHIM::store_masked<uint32_t>(p, mask, v)
#undef _mm256_maskz_loadu_epi8
#define _mm256_maskz_loadu_epi8(mask, p) OCTET_SHIM::load_masked<__m256i, uint8_t>(_mm256_setzero_si256(), mask, p)
#undef _mm256_maskz_loadu_epi16
#define _mm256_maskz_loadu_epi16(mask, p) OCTET_SHIM::load_masked<__m256i, uint16_t>(_mm256_setzero_si256(), mask, p)
#undef _mm256_maskz_loadu_ps
#define _mm256_maskz_loadu_ps(mask, p) OCTET_SHIM::load_masked<__m256, float>(_mm256_setzero_ps(), mask, p)
#undef _mm256_mask_storeu_epi8
#define _mm256_mask_storeu_epi8(p, mask, v) OCTET_SHIM::store_masked<uint8_t>(p, mask, v)
#undef _mm256_mask_storeu_epi16
#define _mm256_mask_storeu_epi16(p, mask, v) OCTET_SHIM::store_masked<uint16_t>(p, mask, v)
#undef _mm256_mask_storeu_ps
#define _mm256_mask_storeu_ps(p, mask, v) OCTET_SHIM::store_masked<float>(p, mask, v)
#undef _mm_maskz_loadu_epi8
#define _mm_maskz_loadu_epi8(mask, p) OCTET_SHIM::load_masked<__m128i, uint8_t>(_mm_setzero_si128(), mask, p)
#undef _mm_maskz_loadu_epi16
#define _mm_maskz_loadu_epi16(mask, p) OCTET_SHIM::load_masked<__m128i, uint16_t>(_mm_setzero_si128(), mask, p)
#undef _mm_maskz_loadu_ps
#define _mm_maskz_loadu_ps(mask, p) OCTET_SHIM::load_masked<__m128, float>(_mm_setzero_ps(), mask, p)
#undef _mm_mask_storeu_epi8
#define _mm_mask_storeu_epi8(p, mask, v) OCTET_SHIM::store_masked<uint8_t>(p, mask, v)
#undef _mm_mask_storeu_epi16
#define _mm_mask_storeu_epi16(p, mask, v) OCTET_SHIM::store_masked<uint16_t>(p, mask, v)
#undef _mm_mask_storeu_ps
#define _mm_mask_storeu_ps(p, mask, v) OCTET_SHIM::store_masked<float>(p, mask, v)
// clang-format on
