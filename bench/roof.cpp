#include "bench/roof.h"

#include <immintrin.h>

#include "op/isa.h"

namespace octet::bench {
namespace {

// Keeps a vector's value without storing it.
#define OCTET_KEEP(v) asm volatile("" : "+x"(v))

// Runs of 64-byte lines: line i of stream s is at (s * apart + i * advance) lines.
struct Walk {
  size_t count, advance, apart;
  int64_t ahead;  // bytes from a load to its prefetch
};

Walk walk_of(size_t bytes, Read how) {
  const size_t lines = bytes / 64;
  if (how == Read::OneStream) return {lines / 4, 4, 1, 0};
  return {lines / 4, 1, lines / 4, how == Read::FourStreams ? 0 : 1024};
}

uint64_t read_sse(const char* p, const Walk& walk) {
  __m128i sum = _mm_setzero_si128();
  for (size_t i = 0; i < walk.count; ++i) {
    for (size_t s = 0; s < 4; ++s) {
      const char* line = p + (s * walk.apart + i * walk.advance) * 64;
      if (walk.ahead != 0) _mm_prefetch(line + walk.ahead, _MM_HINT_T0);
      const auto* q = reinterpret_cast<const __m128i*>(line);
      sum = _mm_xor_si128(sum, _mm_xor_si128(_mm_loadu_si128(q), _mm_loadu_si128(q + 1)));
      sum = _mm_xor_si128(sum, _mm_xor_si128(_mm_loadu_si128(q + 2), _mm_loadu_si128(q + 3)));
    }
  }
  return static_cast<uint64_t>(_mm_cvtsi128_si64(sum)) ^
         static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(sum, sum)));
}

OCTET_ISA_BEGIN("avx2")
uint64_t read_avx2(const char* p, const Walk& walk) {
  __m256i sum[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                    _mm256_setzero_si256()};
  for (size_t i = 0; i < walk.count; ++i) {
#pragma GCC unroll 4
    for (size_t s = 0; s < 4; ++s) {
      const char* line = p + (s * walk.apart + i * walk.advance) * 64;
      if (walk.ahead != 0) _mm_prefetch(line + walk.ahead, _MM_HINT_T0);
      const auto* q = reinterpret_cast<const __m256i*>(line);
      sum[s] = _mm256_xor_si256(sum[s],
                                _mm256_xor_si256(_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)));
    }
  }
  const __m256i all =
      _mm256_xor_si256(_mm256_xor_si256(sum[0], sum[1]), _mm256_xor_si256(sum[2], sum[3]));
  return static_cast<uint64_t>(_mm256_extract_epi64(all, 0) ^ _mm256_extract_epi64(all, 1) ^
                               _mm256_extract_epi64(all, 2) ^ _mm256_extract_epi64(all, 3));
}
OCTET_ISA_END

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

uint64_t read_memory(const void* data, size_t bytes, Read how, bool avx2) {
  const auto* p = static_cast<const char*>(data);
  const Walk walk = walk_of(bytes, how);
  return avx2 ? read_avx2(p, walk) : read_sse(p, walk);
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
