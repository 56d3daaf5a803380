// The gated activation with the exponential in double: the reference.
#include <cmath>

#include "num/bf16.h"
#include "op/pointwise.h"

namespace octet {
namespace {

void run(const SiluMul::Args& args, Stream& stream) noexcept {
  stream.pool().parallel_for(args.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* gate = args.gate + row * args.stride;
      const float* up = args.up + row * args.stride;
      float* out = args.out + row * args.out_stride;
      for (int64_t i = 0; i < args.width; ++i) {
        const double x = gate[i];
        const auto silu = static_cast<float>(x / (1.0 + std::exp(-x)));
        out[i] = args.round_bf16 ? round_to_bf16(round_to_bf16(silu) * up[i]) : silu * up[i];
      }
    }
  });
}

constexpr Kernel<SiluMul> kKernel{
    .name = "cpu.silu_mul.ref",
    .device = DeviceKind::Cpu,
    .preference = 10,
    .needs = {},
    .caps = {},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
