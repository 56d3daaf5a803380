#pragma once
// The bytes of a plan and how much context fits.
#include "plan/model_plan.h"

namespace octet {

// Sets plan.workspace and plan.budget, which follow from the layers and operations chosen. Context
// that nobody asked for is shortened to what fits, with a note; else what does not fit is a
// failure. So is a buffer that is larger than the device allocates at once.
void make_budget(ModelPlan& plan);

}  // namespace octet
