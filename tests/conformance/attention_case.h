#pragma once
// The batches that attention kernels are proven on.
#include <vector>

#include "op/attention_problem.h"

namespace octet::conformance {

// Every case.
std::vector<AttentionCase> attention_cases();

}  // namespace octet::conformance
