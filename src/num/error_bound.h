#pragma once
// How far a float32 result may be from the exact one: derived from the order of its sums, used by
// every conformance test (docs/NUMERICS.md).
#include <cstdint>

namespace octet {

// The order in which one value of a dot product is summed.
struct DotShape {
  int64_t segments = 1;   // parts with a scale of their own, one addition each
  int64_t longest = 1;    // elements of the longest part
  int64_t lanes = 1;      // interleaved partial sums within a part, folded by a tree
  int64_t run = 1;        // elements that a lane takes of each lanes * run
  int64_t roundings = 1;  // per product, beyond the additions: scale factors, a rounded weight
  bool wide = false;      // sums are kept in float64: only the roundings count
};

// The most float32 roundings that a term goes through on its way into the result: the chain of its
// lane, the tree over the lanes, the chain over segments, `roundings`, and one for the bias. A part
// may begin anywhere: what is left of it after whole runs of all lanes may fall into one lane.
int64_t longest_chain(const DotShape& shape);

// Factor c of probable_bound. With independent roundings the error of a chain of n additions
// exceeds lambda * sqrt(n) * 2^-24 * sum|terms| with probability at most 2 exp(-lambda^2 / 2)
// (Higham and Mary, "A New Approach to Probabilistic Rounding Error Analysis", 2019), if every
// partial sum were as large as sum|terms| and every rounding as large as it can be; neither is, so
// 4 leaves a correct kernel far inside. The conformance suites check that it is at most 16 times
// the largest error they see.
inline constexpr double kProbableFactor = 4;

// c * sqrt(n) * 2^-24 * sum_abs, for a chain of n roundings over terms of total magnitude sum_abs.
double probable_bound(int64_t n, double sum_abs);

// n u / (1 - n u) * sum_abs with u = 2^-24 (Higham, "Accuracy and Stability of Numerical
// Algorithms", 3.1): never exceeded. Requires n < 2^24.
double worst_bound(int64_t n, double sum_abs);

}  // namespace octet
