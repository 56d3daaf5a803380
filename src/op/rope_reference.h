#pragma once
// What Rope has to give for one element, in double precision.
#include <cstdint>

#include "op/expected.h"
#include "op/rope.h"

namespace octet {

// Element d of the head `head` [head_dim] after its rotation by `angles` [rotary_dim]: rotary_dim /
// 2 cosines, then as many sines, as Rope::Args has them. Sizes, pairs and rounding are those of
// `args`; its pointers are not followed. Two products and a sum are rounded.
Expected rotated_reference(const Rope::Args& args, const float* head, const float* angles,
                           int64_t d);

// `e` as the cache of `args` keeps it, divided by `scale` (k_scale or v_scale).
Expected cached_reference(const Rope::Args& args, Expected e, float scale);

}  // namespace octet
