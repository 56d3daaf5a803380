// The k best tokens with AVX2: a vector pass finds the few logits that enter the heap.
#include <cmath>

#include "kernels/cpu/norm_grain.h"
#include "kernels/cpu/sample_order.h"
#include "kernels/cpu/sample_scan_avx2.h"
#include "op/sample.h"

namespace octet {
namespace {

OCTET_ISA_BEGIN("avx2,fma,f16c")

int64_t next_over(const float* logits, int64_t begin, int64_t end, float bar) {
  return cpu::next_over_avx2(logits, begin, end, bar);
}

double sum_exp(const float* logits, int64_t vocab, float largest) {
  return cpu::sum_exp_avx2(logits, vocab, largest);
}

OCTET_ISA_END

void top_row(const TopK::Args& args, int64_t row) {
  if (args.k <= 0) return;
  const float* logits = args.logits + row * args.vocab;
  int32_t* ids = args.ids + row * args.k;
  float* logprobs = args.logprobs + row * args.k;
  cpu::best_tokens(logits, args.vocab, ids, args.k, [&](int64_t begin, int64_t end, float bar) {
    return next_over(logits, begin, end, bar);
  });
  const float largest = logits[ids[0]];
  const double norm = double{largest} + std::log(sum_exp(logits, args.vocab, largest));
  for (int64_t i = 0; i < args.k; ++i) {
    logprobs[i] = static_cast<float>(double{logits[ids[i]]} - norm);
  }
}

void run(const TopK::Args& args, Stream& stream) noexcept {
  stream.pool().parallel_for(args.rows, cpu::rows_per_chunk(args.vocab),
                             [&](int64_t begin, int64_t end) {
                               for (int64_t row = begin; row < end; ++row) top_row(args, row);
                             });
}

constexpr Kernel<TopK> kKernel{
    .name = "cpu.topk.avx2",
    .device = DeviceKind::Cpu,
    .preference = 200,
    .needs = {Feature::Avx2, Feature::F16c},
    .caps = {},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
