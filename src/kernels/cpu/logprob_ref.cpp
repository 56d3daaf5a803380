// Log-probabilities of given tokens: the reference.
#include "kernels/cpu/logprob_ref.h"

#include "op/sample.h"

namespace octet {
namespace {

void run(const LogProb::Args& args, Stream& stream) noexcept {
  stream.pool().parallel_for(args.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* logits = args.logits + row * args.vocab;
      args.out[row] =
          static_cast<float>(double{logits[args.ids[row]]} - cpu::log_sum_exp(logits, args.vocab));
    }
  });
}

constexpr Kernel<LogProb> kKernel{
    .name = "cpu.logprob.ref",
    .device = DeviceKind::Cpu,
    .preference = 10,
    .needs = {},
    .caps = {},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
