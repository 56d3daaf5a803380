// Sampling: the reference.
#include <algorithm>

#include "kernels/cpu/sample_draw.h"
#include "op/sample.h"

namespace octet {
namespace {

void sample_row(const Sample::Args& args, int64_t row) {
  float* logits = args.scratch + row * 2 * args.vocab;
  auto* ids = reinterpret_cast<int32_t*>(logits + args.vocab);
  const SampleParams& params = args.params[row];
  const float* source = args.logits + row * args.vocab;
  std::copy(source, source + args.vocab, logits);
  cpu::penalise(args, row, logits);
  const int32_t best = cpu::best_token(logits, args.vocab);
  args.out[row] = cpu::draw(
      params, logits, args.vocab, best, ids, [&](int64_t begin, int64_t end, float* weights) {
        for (int64_t i = begin; i < end; ++i) {
          weights[i - begin] =
              static_cast<float>(cpu::sample_weight(logits[i], logits[best], params.temperature));
        }
      });
}

void run(const Sample::Args& args, Stream& stream) noexcept {
  stream.pool().parallel_for(args.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) sample_row(args, row);
  });
}

constexpr Kernel<Sample> kKernel{
    .name = "cpu.sample.ref",
    .device = DeviceKind::Cpu,
    .preference = 10,
    .needs = {},
    .caps = {},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
