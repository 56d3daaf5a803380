// RMSNorm with AVX2; the sum of squares is kept in double, so only the factor and two products are
// rounded, whatever the width.
#include <cmath>

#include "kernels/cpu/norm_flag.h"
#include "kernels/cpu/norm_grain.h"
#include "kernels/cpu/vector_math_avx2.h"
#include "op/norm.h"

namespace octet {
namespace {

OCTET_ISA_BEGIN("avx2,fma,f16c")

template <bool kRound>
OCTET_ALWAYS_INLINE __m256 rounded(__m256 v) {
  return kRound ? cpu::round_bf16_avx2(v) : v;
}

// Squares of eight floats, exact, added to two sets of four double sums.
OCTET_ALWAYS_INLINE void add_squares(__m256 v, __m256d& low, __m256d& high) {
  const __m256d a = _mm256_cvtps_pd(_mm256_castps256_ps128(v));
  const __m256d b = _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
  low = _mm256_fmadd_pd(a, a, low);
  high = _mm256_fmadd_pd(b, b, high);
}

// x += delta, and the sum of the squares.
template <bool kRound>
double add_and_square(float* x, const float* delta, int64_t width) {
  __m256d low = _mm256_setzero_pd();
  __m256d high = _mm256_setzero_pd();
  for (int64_t i = 0; i < width; i += 8) {
    __m256 v = cpu::load_lanes_avx2(x + i, width - i);
    if (delta != nullptr) {
      v = rounded<kRound>(_mm256_add_ps(v, cpu::load_lanes_avx2(delta + i, width - i)));
      cpu::store_lanes_avx2(x + i, v, width - i);
    }
    add_squares(v, low, high);
  }
  return cpu::sum_pd_avx2(_mm256_add_pd(low, high));
}

template <bool kRound>
void scale(const float* x, const float* weight, float factor, float* out, int64_t width) {
  const __m256 factors = _mm256_set1_ps(factor);
  for (int64_t i = 0; i < width; i += 8) {
    const __m256 normal =
        rounded<kRound>(_mm256_mul_ps(cpu::load_lanes_avx2(x + i, width - i), factors));
    const __m256 weights = cpu::load_lanes_avx2(weight + i, width - i);
    cpu::store_lanes_avx2(out + i, rounded<kRound>(_mm256_mul_ps(normal, weights)), width - i);
  }
}

OCTET_ISA_END

template <bool kRound>
void normalise(const RmsNorm::Args& args, int64_t row) {
  float* x = args.x + row * args.x_stride;
  const float* delta = args.delta == nullptr ? nullptr : args.delta + row * args.delta_stride;
  const double sum = add_and_square<kRound>(x, delta, args.width);
  if (args.not_finite != nullptr && !std::isfinite(sum)) {
    cpu::mark_not_finite(args.not_finite[row / args.rows_per_flag], args.tag);
  }
  if (args.weight == nullptr) return;
  const double mean = sum / static_cast<double>(args.width);
  const auto factor = static_cast<float>(1.0 / std::sqrt(mean + double{args.epsilon}));
  scale<kRound>(x, args.weight, factor, args.out + row * args.out_stride, args.width);
}

void run(const RmsNorm::Args& args, Stream& stream) noexcept {
  stream.pool().parallel_for(
      args.rows, cpu::rows_per_chunk(args.width), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          args.round_bf16 ? normalise<true>(args, row) : normalise<false>(args, row);
        }
      });
}

constexpr Kernel<RmsNorm> kKernel{
    .name = "cpu.norm.avx2",
    .device = DeviceKind::Cpu,
    .preference = 200,
    .needs = {Feature::Avx2, Feature::F16c},
    .caps = {},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
