#include "bench/roof.h"

#include <immintrin.h>

#include "op/isa.h"

namespace octet::bench {
namespace {

// Keeps a vector's value without storing it.
#define OCTET_KEEP(v) asm volatile("" : "+x"(v))

uint64_t read_words(const uint64_t* p, size_t words, int streams) {
  // SSE2 is enough to load as fast as memory delivers.
  const auto* q = reinterpret_cast<const __m128i*>(p);
  const size_t vectors = words / 2;
  __m128i sum[4] = {_mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128(),
                    _mm_setzero_si128()};
  const size_t step = streams == 1 ? 4 : vectors / 4;
  const size_t count = streams == 1 ? vectors / 4 : step;
  const size_t advance = streams == 1 ? 4 : 1;
  for (size_t i = 0; i < count; ++i) {
    const __m128i* at = q + i * advance;
    const size_t apart = streams == 1 ? 1 : step;
    sum[0] = _mm_xor_si128(sum[0], _mm_loadu_si128(at));
    sum[1] = _mm_xor_si128(sum[1], _mm_loadu_si128(at + apart));
    sum[2] = _mm_xor_si128(sum[2], _mm_loadu_si128(at + 2 * apart));
    sum[3] = _mm_xor_si128(sum[3], _mm_loadu_si128(at + 3 * apart));
  }
  const __m128i all = _mm_xor_si128(_mm_xor_si128(sum[0], sum[1]), _mm_xor_si128(sum[2], sum[3]));
  return static_cast<uint64_t>(_mm_cvtsi128_si64(all)) ^
         static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(all, all)));
}

double spin_sse(int64_t rounds) {
  __m128 sums[12];
  for (__m128& s : sums) s = _mm_set1_ps(1.0F);
  const __m128 x = _mm_set1_ps(0.999F), y = _mm_set1_ps(0.001F);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (__m128& s : sums) {
      s = _mm_add_ps(_mm_mul_ps(s, x), y);
      OCTET_KEEP(s);
    }
  }
  return static_cast<double>(rounds) * 12 * 8;
}

OCTET_ISA_BEGIN("avx2,fma")
double spin_avx2(int64_t rounds) {
  __m256 sums[12];
  for (__m256& s : sums) s = _mm256_set1_ps(1.0F);
  const __m256 x = _mm256_set1_ps(0.999F), y = _mm256_set1_ps(0.001F);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (__m256& s : sums) {
      s = _mm256_fmadd_ps(s, x, y);
      OCTET_KEEP(s);
    }
  }
  return static_cast<double>(rounds) * 12 * 16;
}
OCTET_ISA_END

OCTET_ISA_BEGIN("avx512f")
double spin_avx512(int64_t rounds) {
  __m512 sums[24];
  for (__m512& s : sums) s = _mm512_set1_ps(1.0F);
  const __m512 x = _mm512_set1_ps(0.999F), y = _mm512_set1_ps(0.001F);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 24
    for (__m512& s : sums) {
      s = _mm512_fmadd_ps(s, x, y);
      asm volatile("" : "+v"(s));
    }
  }
  return static_cast<double>(rounds) * 24 * 32;
}
OCTET_ISA_END

OCTET_ISA_BEGIN("avx512f,avx512bf16")
double spin_bf16(int64_t rounds) {
  __m512 sums[24];
  for (__m512& s : sums) s = _mm512_setzero_ps();
  const auto x = (__m512bh)_mm512_set1_epi32(0x3F803F80);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 24
    for (__m512& s : sums) {
      s = _mm512_dpbf16_ps(s, x, x);
      asm volatile("" : "+v"(s));
    }
  }
  return static_cast<double>(rounds) * 24 * 64;
}
OCTET_ISA_END

}  // namespace

uint64_t read_memory(const void* data, size_t bytes, int streams) {
  return read_words(static_cast<const uint64_t*>(data), bytes / 8, streams);
}

Peak peak_of(Features needs) {
  if (needs.has(Feature::Avx512Bf16)) return Peak::Avx512Bf16;
  if (needs.has(Feature::Avx512)) return Peak::Avx512Fma;
  return needs.has(Feature::Avx2) ? Peak::Avx2Fma : Peak::Sse;
}

const char* name(Peak peak) {
  switch (peak) {
    case Peak::Sse:
      return "SSE mul+add";
    case Peak::Avx2Fma:
      return "AVX2 FMA";
    case Peak::Avx512Fma:
      return "AVX-512 FMA";
    case Peak::Avx512Bf16:
      return "vdpbf16ps";
  }
  return "";
}

double spin_peak(Peak peak, int64_t rounds) {
  switch (peak) {
    case Peak::Sse:
      return spin_sse(rounds);
    case Peak::Avx2Fma:
      return spin_avx2(rounds);
    case Peak::Avx512Fma:
      return spin_avx512(rounds);
    case Peak::Avx512Bf16:
      return spin_bf16(rounds);
  }
  return 0;
}

}  // namespace octet::bench
