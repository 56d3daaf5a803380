// The k best tokens with log-probabilities: the reference.
#include "kernels/cpu/logprob_ref.h"
#include "op/sample.h"

namespace octet {
namespace {

void top_row(const TopK::Args& args, int64_t row) {
  const float* logits = args.logits + row * args.vocab;
  int32_t* ids = args.ids + row * args.k;
  float* logprobs = args.logprobs + row * args.k;
  cpu::best_tokens(logits, args.vocab, ids, args.k,
                   [](int64_t begin, int64_t, float) { return begin; });
  const double norm = cpu::log_sum_exp(logits, args.vocab);
  for (int64_t i = 0; i < args.k; ++i) {
    logprobs[i] = static_cast<float>(double{logits[ids[i]]} - norm);
  }
}

void run(const TopK::Args& args, Stream& stream) noexcept {
  stream.pool().parallel_for(args.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) top_row(args, row);
  });
}

constexpr Kernel<TopK> kKernel{
    .name = "cpu.topk.ref",
    .device = DeviceKind::Cpu,
    .preference = 10,
    .needs = {},
    .caps = {},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
