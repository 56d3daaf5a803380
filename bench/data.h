#pragma once
// What benchmarks of kernels share: weights and inputs as models have them, samples of time, words
// of the command line.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "num/dtype.h"
#include "num/quant_spec.h"

namespace octet::bench {

// The next of a row of numbers that never is 0 (xorshift32).
uint32_t next_random(uint32_t& state);

// About normal with standard deviation 1.
float bell(uint32_t& state);

// Weights as a quantiser leaves them: a normal distribution whose 4.5 sigma are the largest code.
void fill_weights(std::byte* data, int64_t elements, DType dtype);

// tensor, row, groupN or blockN. Throws BadInput for another word.
ScaleTile tile_of(const std::string& word);

// The parts of a list with commas.
std::vector<std::string> words(const std::string& list);

// Seconds of every sample of one thing.
struct Samples {
  std::vector<double> seconds;
  double best() const { return *std::min_element(seconds.begin(), seconds.end()); }
  double median() const {
    std::vector<double> sorted = seconds;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<long>(sorted.size() / 2),
                     sorted.end());
    return sorted[sorted.size() / 2];
  }
};

}  // namespace octet::bench
