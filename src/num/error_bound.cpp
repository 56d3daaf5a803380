#include "num/error_bound.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"

namespace octet {
namespace {

constexpr double kUnitRoundoff = 0x1p-24;

}  // namespace

int64_t longest_chain(const DotShape& shape) {
  const int64_t outside = shape.roundings + 1;
  if (shape.wide) return outside;
  const int64_t longest = std::max<int64_t>(shape.longest, 1);
  const int64_t step = shape.lanes * shape.run;
  const int64_t in_lane = longest / step * shape.run + std::min(longest % step, shape.run);
  // Additions of lanes that stay zero are exact.
  const int64_t tree =
      std::min<int64_t>(std::bit_width(static_cast<uint64_t>(shape.lanes - 1)), longest - 1);
  return in_lane + tree + shape.segments + outside;
}

double probable_bound(int64_t n, double sum_abs) {
  return kProbableFactor * std::sqrt(static_cast<double>(n)) * kUnitRoundoff * sum_abs;
}

double worst_bound(int64_t n, double sum_abs) {
  OCTET_CHECK(n < int64_t{1} << 24, "chain of {} roundings", n);
  const double nu = static_cast<double>(n) * kUnitRoundoff;
  return nu / (1 - nu) * sum_abs;
}

}  // namespace octet
