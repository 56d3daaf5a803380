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
//
// `underflow` is what float32 may lose besides roundings. Below f = 2^-126 digits are lost or the
// value counts as zero: an error of at most f each time, whose effect on y is f times the factors
// that are multiplied in later. A term is c d s t with the input c, its scale s, the weight d and
// its scale t, multiplied in any order; so an operand or partial product that is lost costs f times
// a product of some of the other factors, and each addition f times some of s and t. Over all of
// them that is at most 2 f (1 + |c|)(1 + s)(1 + |d|)(1 + t) for each k, with f for y itself:
//   underflow = 2 f * max over k of (1 + |c|)(1 + s) * sum over k of (1 + |d|)(1 + t) + f
struct LinearReference {
  std::vector<double> y;
  std::vector<double> magnitude;
  std::vector<double> underflow;
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
