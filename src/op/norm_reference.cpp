#include "op/norm_reference.h"

#include <cmath>

#include "num/error_bound.h"

namespace octet {
namespace {

// What a product below the normal range may lose.
constexpr double kUnderflow = 0x1p-140;

}  // namespace

std::vector<Expected> norm_reference(const float* x, const float* weight, int64_t width,
                                     float epsilon, bool round_bf16) {
  double sum = 0;
  for (int64_t i = 0; i < width; ++i) sum += double{x[i]} * x[i];
  const double factor = 1 / std::sqrt(sum / static_cast<double>(width) + double{epsilon});
  std::vector<Expected> out(static_cast<size_t>(width));
  for (int64_t i = 0; i < width; ++i) {
    const double normal = x[i] * factor;
    Expected& e = out[static_cast<size_t>(i)];
    if (round_bf16) {
      const Expected exact{normal, worst_bound(2, std::fabs(normal)) + kUnderflow};
      e = rounded(times(rounded(exact, DType::BF16), weight[i]), DType::BF16);
    } else {
      e.value = normal * weight[i];
      e.bound = worst_bound(3, std::fabs(e.value)) + kUnderflow;
    }
  }
  return out;
}

}  // namespace octet
