// RMSNorm with the sum of squares in double: the reference.
#include <cmath>

#include "kernels/cpu/norm_flag.h"
#include "num/bf16.h"
#include "op/norm.h"

namespace octet {
namespace {

float rounded(float value, bool round) {
  return round ? round_to_bf16(value) : value;
}

void normalise(const RmsNorm::Args& args, int64_t row) {
  float* x = args.x + row * args.x_stride;
  if (args.delta != nullptr) {
    const float* delta = args.delta + row * args.delta_stride;
    for (int64_t i = 0; i < args.width; ++i) x[i] = rounded(x[i] + delta[i], args.round_bf16);
  }
  double sum = 0;
  for (int64_t i = 0; i < args.width; ++i) sum += double{x[i]} * double{x[i]};
  if (args.not_finite != nullptr && !std::isfinite(sum)) {
    cpu::mark_not_finite(args.not_finite[row / args.rows_per_flag], args.tag);
  }
  if (args.weight == nullptr) return;
  const double mean = sum / static_cast<double>(args.width);
  const auto factor = static_cast<float>(1.0 / std::sqrt(mean + double{args.epsilon}));
  float* out = args.out + row * args.out_stride;
  for (int64_t i = 0; i < args.width; ++i) {
    const float normal = rounded(x[i] * factor, args.round_bf16);
    out[i] = rounded(normal * args.weight[i], args.round_bf16);
  }
}

void run(const RmsNorm::Args& args, Stream& stream) noexcept {
  stream.pool().parallel_for(args.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) normalise(args, row);
  });
}

constexpr Kernel<RmsNorm> kKernel{
    .name = "cpu.norm.ref",
    .device = DeviceKind::Cpu,
    .preference = 10,
    .needs = {},
    .caps = {},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
