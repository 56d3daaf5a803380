#pragma once
// Random numbers that are the same on every platform for one seed.
#include <cstdint>

namespace octet {

// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
class SplitMix64 {
 public:
  // The state moves by this much per number: number n of a seed is the first of seed + n * kStep.
  static constexpr uint64_t kStep = 0x9E3779B97F4A7C15;

  constexpr explicit SplitMix64(uint64_t seed) : state_(seed) {}

  constexpr uint64_t bits() {
    uint64_t z = (state_ += kStep);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

  // In [0, 1), with 53 random bits.
  constexpr double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

  // In [0, count).
  constexpr int64_t below(int64_t count) {
    return static_cast<int64_t>(bits() % static_cast<uint64_t>(count));
  }

  // About normal with mean 0 and variance 1, in (-6, 6): the sum of twelve uniforms.
  constexpr double bell() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }

 private:
  uint64_t state_;
};

}  // namespace octet
