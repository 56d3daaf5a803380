#pragma once
// Random numbers for problems: the same on every platform for one seed.
#include <cmath>
#include <cstdint>
#include <vector>

namespace octet::conformance {

// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t bits() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }

  // In [0, count).
  int64_t below(int64_t count) {
    return static_cast<int64_t>(bits() % static_cast<uint64_t>(count));
  }

  // Uniform in [low, high).
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53;
  }

  // About normal with variance 1, in (-6, 6).
  double bell() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform(0, 1);
    return sum;
  }

  // n numbers of bell(), times `scale`.
  std::vector<float> bells(int64_t n, double scale = 1) {
    std::vector<float> values(static_cast<size_t>(n));
    for (float& v : values) v = static_cast<float>(bell() * scale);
    return values;
  }

 private:
  uint64_t state_;
};

}  // namespace octet::conformance
