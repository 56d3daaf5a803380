// Arg-max: the reference.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/norm_flag.h"
#include "kernels/cpu/sample_order.h"
#include "op/sample.h"

namespace octet {
namespace {

void run(const ArgMax::Args& args, Stream& stream) noexcept {
  stream.pool().parallel_for(args.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* logits = args.logits + row * args.vocab;
      args.out[row] = cpu::best_token(logits, args.vocab);
      const bool finite = std::all_of(logits, logits + args.vocab,
                                      [](float logit) { return std::isfinite(logit); });
      if (!finite && args.not_finite != nullptr) {
        cpu::mark_not_finite(args.not_finite[row], args.tag);
      }
    }
  });
}

constexpr Kernel<ArgMax> kKernel{
    .name = "cpu.argmax.ref",
    .device = DeviceKind::Cpu,
    .preference = 10,
    .needs = {},
    .caps = {},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
