#pragma once
// What SiluMul has to give for one element, in double precision.
#include "op/expected.h"

namespace octet {

// silu(gate) * up; with round_bf16 silu(gate) and the result are rounded.
Expected silu_mul_reference(float gate, float up, bool round_bf16);

}  // namespace octet
