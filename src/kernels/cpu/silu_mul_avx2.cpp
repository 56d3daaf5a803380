// The gated activation with AVX2.
#include "kernels/cpu/norm_grain.h"
#include "kernels/cpu/vector_math_avx2.h"
#include "op/pointwise.h"

namespace octet {
namespace {

OCTET_ISA_BEGIN("avx2,fma,f16c")

template <bool kRound>
OCTET_ALWAYS_INLINE __m256 silu_mul(__m256 gate, __m256 up) {
  const __m256 one = _mm256_set1_ps(1.0F);
  const __m256 negative = _mm256_xor_ps(gate, _mm256_set1_ps(-0.0F));
  __m256 silu = _mm256_div_ps(gate, _mm256_add_ps(one, cpu::exp_avx2(negative)));
  if (kRound) silu = cpu::round_bf16_avx2(silu);
  const __m256 out = _mm256_mul_ps(silu, up);
  return kRound ? cpu::round_bf16_avx2(out) : out;
}

template <bool kRound>
void silu_mul_row(const float* gate, const float* up, float* out, int64_t width) {
  for (int64_t i = 0; i < width; i += 8) {
    const __m256 a = cpu::load_lanes_avx2(gate + i, width - i);
    const __m256 b = cpu::load_lanes_avx2(up + i, width - i);
    cpu::store_lanes_avx2(out + i, silu_mul<kRound>(a, b), width - i);
  }
}

OCTET_ISA_END

void run(const SiluMul::Args& args, Stream& stream) noexcept {
  // Pieces of rows: a single wide row is worth two threads.
  constexpr int64_t kPiece = 4096;
  const int64_t pieces = (args.width + kPiece - 1) / kPiece;
  const int64_t grain = cpu::rows_per_chunk(std::min(args.width, kPiece));
  stream.pool().parallel_for(args.rows * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / pieces;
      const int64_t col = i % pieces * kPiece;
      const float* gate = args.gate + row * args.stride + col;
      const float* up = args.up + row * args.stride + col;
      float* out = args.out + row * args.out_stride + col;
      const int64_t width = std::min(kPiece, args.width - col);
      args.round_bf16 ? silu_mul_row<true>(gate, up, out, width)
                      : silu_mul_row<false>(gate, up, out, width);
    }
  });
}

constexpr Kernel<SiluMul> kKernel{
    .name = "cpu.silu_mul.avx2",
    .device = DeviceKind::Cpu,
    .preference = 200,
    .needs = {Feature::Avx2, Feature::F16c},
    .caps = {},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
