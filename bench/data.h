#pragma once
// What benchmarks of kernels share: weights and inputs as models have them, samples of time, the
// command line.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
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

// Inputs of about normal distribution; codes of 8 bits in the middle of their range.
void fill_inputs(std::byte* data, int64_t elements, DType dtype);

// tensor, row, groupN or blockN. Throws BadInput for another word.
ScaleTile tile_of(const std::string& word);

// The parts of a list with commas.
std::vector<std::string> words(const std::string& list);

// A flag that takes a value, and where the value goes.
struct BenchFlag {
  std::string_view name;
  std::variant<std::string*, int64_t*, int*> place;
};

// Reads "--name value" pairs. Throws BadInput with all names for an unknown one, one without a
// value, and a value that is no number.
void read_flags(int argc, char** argv, const std::vector<BenchFlag>& flags);

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
