// Arg-max with AVX2.
#include "kernels/cpu/norm_flag.h"
#include "kernels/cpu/norm_grain.h"
#include "kernels/cpu/sample_scan_avx2.h"
#include "op/sample.h"

namespace octet {
namespace {

OCTET_ISA_BEGIN("avx2,fma,f16c")

cpu::BestToken best_of(const float* logits, int64_t vocab) {
  return cpu::best_token_avx2(logits, vocab);
}

OCTET_ISA_END

void run(const ArgMax::Args& args, Stream& stream) noexcept {
  stream.pool().parallel_for(
      args.rows, cpu::rows_per_chunk(args.vocab), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const cpu::BestToken best = best_of(args.logits + row * args.vocab, args.vocab);
          args.out[row] = best.id;
          if (!best.all_finite && args.not_finite != nullptr) {
            cpu::mark_not_finite(args.not_finite[row], args.tag);
          }
        }
      });
}

constexpr Kernel<ArgMax> kKernel{
    .name = "cpu.argmax.avx2",
    .device = DeviceKind::Cpu,
    .preference = 200,
    .needs = {Feature::Avx2, Feature::F16c},
    .caps = {},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
