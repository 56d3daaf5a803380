#pragma once
// What a linear layer has to be: its outputs in double precision, and how far a kernel's may be
// from them. Shared by the conformance suite and `octet verify`; in plain loops, and none of a
// kernel's.
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "op/linear.h"

namespace octet {

// Exact outputs, [m, outputs] row-major: y, and the sum of the magnitudes of the terms of each.
struct LinearReference {
  std::vector<double> y;
  std::vector<double> magnitude;
};

// Outputs `outputs` (rows of W) of the first `m` tokens, every product and sum in float64. `x` is
// host memory of the form that `problem` takes. The scales of `weight` count as they are stored.
LinearReference linear_reference(const QuantView& weight, const LinearProblem& problem,
                                 const LinearInput& x, int64_t m, std::span<const int64_t> outputs,
                                 ThreadPool& pool);

// Stretches of K in which no scale changes: how many, and the longest, in elements, counted one by
// one. With `of_weight_alone` the scales of the input do not count.
struct ScaleStretches {
  int64_t count = 0;
  int64_t longest = 0;
};
ScaleStretches scale_stretches(const LinearProblem& problem, bool of_weight_alone);

// The longest chain of roundings of one output, by the kernel's error model: what the bounds of
// num/error_bound.h take.
int64_t longest_chain(const LinearKernel& kernel, const LinearProblem& problem);

}  // namespace octet
