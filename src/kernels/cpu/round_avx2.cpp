// Rounds a carrier to bfloat16 in place with AVX2.
#include "kernels/cpu/norm_grain.h"
#include "kernels/cpu/vector_math_avx2.h"
#include "op/pointwise.h"

namespace octet {
namespace {

OCTET_ISA_BEGIN("avx2,fma,f16c")

void round_row(float* x, int64_t width) {
  for (int64_t i = 0; i < width; i += 8) {
    const __m256 v = cpu::load_lanes_avx2(x + i, width - i);
    cpu::store_lanes_avx2(x + i, cpu::round_bf16_avx2(v), width - i);
  }
}

OCTET_ISA_END

void run(const RoundBf16::Args& args, Stream& stream) noexcept {
  stream.pool().parallel_for(args.rows, cpu::rows_per_chunk(args.width),
                             [&](int64_t begin, int64_t end) {
                               for (int64_t row = begin; row < end; ++row) {
                                 round_row(args.x + row * args.stride, args.width);
                               }
                             });
}

constexpr Kernel<RoundBf16> kKernel{
    .name = "cpu.round.avx2",
    .device = DeviceKind::Cpu,
    .preference = 200,
    .needs = {Feature::Avx2, Feature::F16c},
    .caps = {},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
