// Log-probabilities of given tokens with AVX2.
#include <cmath>

#include "kernels/cpu/norm_grain.h"
#include "kernels/cpu/sample_scan_avx2.h"
#include "op/sample.h"

namespace octet {
namespace {

OCTET_ISA_BEGIN("avx2,fma,f16c")

double log_sum_exp(const float* logits, int64_t vocab) {
  const float largest = logits[cpu::best_token_avx2(logits, vocab).id];
  return double{largest} + std::log(cpu::sum_exp_avx2(logits, vocab, largest));
}

OCTET_ISA_END

void run(const LogProb::Args& args, Stream& stream) noexcept {
  stream.pool().parallel_for(
      args.rows, cpu::rows_per_chunk(args.vocab), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const float* logits = args.logits + row * args.vocab;
          args.out[row] =
              static_cast<float>(double{logits[args.ids[row]]} - log_sum_exp(logits, args.vocab));
        }
      });
}

constexpr Kernel<LogProb> kKernel{
    .name = "cpu.logprob.avx2",
    .device = DeviceKind::Cpu,
    .preference = 200,
    .needs = {Feature::Avx2, Feature::F16c},
    .caps = {},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
