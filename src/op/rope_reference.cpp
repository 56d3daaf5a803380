#include "op/rope_reference.h"

#include <cmath>

#include "num/error_bound.h"

namespace octet {

Expected rotated_reference(const Rope::Args& args, const float* head, const float* angles,
                           int64_t d) {
  const double x = head[d];
  Expected e{x, 0};
  if (d < args.rotary_dim) {
    const int64_t half = args.rotary_dim / 2;
    const bool low = args.interleaved ? d % 2 == 0 : d < half;
    const int64_t apart = args.interleaved ? 1 : half;
    const int64_t pair = args.interleaved ? d / 2 : d % half;
    const double other = head[low ? d + apart : d - apart];
    const double kept = x * angles[pair];
    const double turned = (low ? -1 : 1) * other * angles[half + pair];
    e = {kept + turned, worst_bound(2, std::fabs(kept) + std::fabs(turned))};
  }
  return args.round_bf16 ? rounded(e, DType::BF16) : e;
}

Expected cached_reference(const Rope::Args& args, Expected e, float scale) {
  // The quotient, or the product with the reciprocal, is rounded before it is stored.
  if (scale != 1 && e.bound > 0) e.bound += std::fabs(e.value) * 0x1p-23;
  return rounded({e.value / scale, e.bound / scale}, args.kv_dtype);
}

}  // namespace octet
