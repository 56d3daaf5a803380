// Sampling with AVX2: the passes over the vocabulary are vector code, the draw is shared.
#include <algorithm>

#include "kernels/cpu/norm_grain.h"
#include "kernels/cpu/sample_draw.h"
#include "kernels/cpu/sample_scan_avx2.h"

namespace octet {
namespace {

OCTET_ISA_BEGIN("avx2,fma,f16c")

int32_t best_of(const float* logits, int64_t vocab) {
  return cpu::best_token_avx2(logits, vocab).id;
}

void weigh(const float* logits, int64_t count, float largest, float temperature, float* weights) {
  cpu::sample_weights_avx2(logits, count, largest, temperature, weights);
}

OCTET_ISA_END

void sample_row(const Sample::Args& args, int64_t row) {
  float* logits = args.scratch + row * 2 * args.vocab;
  auto* ids = reinterpret_cast<int32_t*>(logits + args.vocab);
  const SampleParams& params = args.params[row];
  const float* source = args.logits + row * args.vocab;
  std::copy(source, source + args.vocab, logits);
  cpu::penalise(args, row, logits);
  const int32_t best = best_of(logits, args.vocab);
  args.out[row] = cpu::draw(
      params, logits, args.vocab, best, ids, [&](int64_t begin, int64_t end, float* weights) {
        weigh(logits + begin, end - begin, logits[best], params.temperature, weights);
      });
}

void run(const Sample::Args& args, Stream& stream) noexcept {
  stream.pool().parallel_for(args.rows, cpu::rows_per_chunk(args.vocab),
                             [&](int64_t begin, int64_t end) {
                               for (int64_t row = begin; row < end; ++row) sample_row(args, row);
                             });
}

constexpr Kernel<Sample> kKernel{
    .name = "cpu.sample.avx2",
    .device = DeviceKind::Cpu,
    .preference = 200,
    .needs = {Feature::Avx2, Feature::F16c},
    .caps = {},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
