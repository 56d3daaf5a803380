// Rounds a carrier to bfloat16 in place: the reference.
#include "num/bf16.h"
#include "op/pointwise.h"

namespace octet {
namespace {

void run(const RoundBf16::Args& args, Stream& stream) noexcept {
  stream.pool().parallel_for(args.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* x = args.x + row * args.stride;
      for (int64_t i = 0; i < args.width; ++i) x[i] = round_to_bf16(x[i]);
    }
  });
}

constexpr Kernel<RoundBf16> kKernel{
    .name = "cpu.round.ref",
    .device = DeviceKind::Cpu,
    .preference = 10,
    .needs = {},
    .caps = {},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
