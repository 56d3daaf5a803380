// The largest magnitude of a tensor, in plain loops. Cost: rows * width * 4 bytes read, one pass.
#include <cmath>

#include "op/absmax.h"

namespace octet {
namespace {

void run(const AbsMax::Args& args, Stream&) noexcept {
  float largest = *args.out;
  for (int64_t r = 0; r < args.rows; ++r) {
    const float* row = args.x + r * args.stride;
    for (int64_t c = 0; c < args.width; ++c) {
      const float magnitude = std::fabs(row[c]);
      if (!(magnitude <= largest))
        largest = magnitude;  // true for NaN, which then stays: no comparison with it holds
      if (std::isnan(largest)) break;
    }
    if (std::isnan(largest)) break;
  }
  *args.out = largest;
}

constexpr Kernel<AbsMax> kAbsMax{"cpu.absmax.ref", DeviceKind::Cpu, 10, {}, {}, nullptr, run};
OCTET_KERNEL(kAbsMax);

}  // namespace
}  // namespace octet
