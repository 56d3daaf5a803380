#include "op/pointwise_reference.h"

#include <cmath>

#include "num/error_bound.h"

namespace octet {
namespace {

// exp to 4 units of 2^-24, the sum, the division; and the product.
constexpr int64_t kSiluRoundings = 6;
// Below exp(-87) exp(-x) leaves float32, and what is lost is smaller than this.
constexpr double kUnderflow = 0x1p-118;

}  // namespace

Expected silu_mul_reference(float gate, float up, bool round_bf16) {
  const double silu = gate / (1 + std::exp(-double{gate}));
  if (round_bf16) {
    const Expected exact{silu, worst_bound(kSiluRoundings, std::fabs(silu)) + kUnderflow};
    return rounded(times(rounded(exact, DType::BF16), up), DType::BF16);
  }
  const double value = silu * up;
  return {value, worst_bound(kSiluRoundings + 1, std::fabs(value)) + kUnderflow};
}

}  // namespace octet
