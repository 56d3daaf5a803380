#include "evaluate/op_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/split_mix.h"

namespace octet {

void* DeviceArrays::bytes(size_t count) {
  buffers_.push_back(device_.allocate(std::max<size_t>(count, 1)));
  return buffers_.back().data();
}

void OpComparison::compare(const OpPlace& place, double got, const Expected& expected) {
  ++check_.values;
  // Beyond float32 there is infinity; NaN is not <=.
  if (!(std::fabs(expected.value) <= std::numeric_limits<float>::max())) {
    if (std::isfinite(got)) fail(place, got, expected, HUGE_VAL);
    return;
  }
  const double error = std::fabs(got - expected.value);
  if (error == 0) return;
  double ratio = expected.bound > 0 ? error / expected.bound : HUGE_VAL;
  if (std::isnan(ratio)) ratio = HUGE_VAL;
  if (ratio > 1) fail(place, got, expected, ratio);
  check_.worst = std::max(check_.worst, ratio);
}

void OpComparison::fail(const OpPlace& place, double got, const Expected& expected, double ratio) {
  if (!check_.failure.empty() && ratio <= check_.worst) return;
  check_.worst = ratio;
  if (!std::isfinite(expected.value)) {
    check_.reason = "a finite value where none is expected";
  } else if (!std::isfinite(got)) {
    check_.reason = "a value that is not finite";
  } else if (std::isfinite(ratio)) {
    check_.reason = fmt::format("error {:.2g} times its bound", ratio);
  } else {
    check_.reason = "a value that must be equal differs";
  }
  check_.failure =
      fmt::format("{}{} [{}, {}] is {:.9g}, expected {:.9g}: {}", place.array,
                  place.layer < 0 ? std::string() : fmt::format(" of layer {}", place.layer),
                  place.row, place.column, got, expected.value, check_.reason);
}

OpCheck OpComparison::result() && {
  OCTET_CHECK(check_.values > 0, "{} values compared", check_.values);
  return std::move(check_);
}

std::vector<float> random_values(int64_t count, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(random.bell());
  return values;
}

}  // namespace octet
