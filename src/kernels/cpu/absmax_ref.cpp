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
      if (std::isnan(largest)) return;  // it is NaN already, or has just been stored
      const float magnitude = std::fabs(row[c]);
      if (!(magnitude <= largest)) *args.out = largest = magnitude;  // true for NaN as well
    }
  }
}

constexpr Kernel<AbsMax> kAbsMax{"cpu.absmax.ref", DeviceKind::Cpu, 10, {}, {}, nullptr, run};
OCTET_KERNEL(kAbsMax);

}  // namespace
}  // namespace octet
