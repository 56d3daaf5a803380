#pragma once
// Runs one linear kernel on one problem, with guards around everything that it may write.
#include <memory>
#include <string>
#include <vector>

#include "op/linear.h"
#include "tests/conformance/linear_case.h"

namespace octet::conformance {

// y of one run with the guard values around it.
class Output {
 public:
  Output(int64_t rows, int64_t cols, int64_t pad);

  float at(int64_t row, int64_t col) const {
    return values_[static_cast<size_t>(row * stride() + col)];
  }
  float* data() { return values_.data(); }
  size_t bytes() const { return values_.size() * sizeof(float); }
  int64_t stride() const { return n + pad; }

  // What was written that should not have been, or an empty text.
  std::string damage() const;
  bool same_bits(const Output& other) const;
  // True when every row here has the bits of the same row of `other`.
  bool same_rows(const Output& other) const;

  int64_t m, n, pad;
  bool scratch_overrun = false;

 private:
  std::vector<float> values_;
};

// A kernel on a device of its own with a fixed number of threads.
class Runner {
 public:
  Runner(const LinearKernel& kernel, int threads);

  // y for the first `m` rows of the data's input. Rows of y are y_pad elements apart.
  Output run(const LinearData& data, int64_t m, int64_t y_pad);
  const LinearKernel& kernel() const { return kernel_; }

 private:
  // A copy on the device; an empty one where there is nothing to copy.
  Buffer copy(const void* data, size_t bytes);

  const LinearKernel& kernel_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace octet::conformance
