#pragma once
// Random numbers for problems: the same on every platform for one seed.
#include <cstdint>
#include <vector>

#include "base/split_mix.h"

namespace octet::conformance {

class Random {
 public:
  explicit Random(uint64_t seed) : source_(seed) {}

  uint64_t bits() { return source_.bits(); }

  // In [0, count).
  int64_t below(int64_t count) { return source_.below(count); }

  // Uniform in [low, high).
  double uniform(double low, double high) { return low + (high - low) * source_.uniform(); }

  // About normal with variance 1, in (-6, 6).
  double bell() { return source_.bell(); }

  // n numbers of bell(), times `scale`.
  std::vector<float> bells(int64_t n, double scale = 1) {
    std::vector<float> values(static_cast<size_t>(n));
    for (float& v : values) v = static_cast<float>(bell() * scale);
    return values;
  }

 private:
  SplitMix64 source_;
};

}  // namespace octet::conformance
