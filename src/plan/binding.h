#pragma once
// Whether every --kernel of the user binds something.
#include <span>

#include "plan/model_plan.h"

namespace octet {

// Why the backend of `policy` binds nothing on this device at all; nothing when it could.
std::optional<std::string> foreign_backend(const Policy& policy, const DeviceInfo& device,
                                           std::span<const LinearKernel* const> catalogue);

// Throws BadInput for the first rule of `policy.forced` that binds no layer of the model: its
// expression finds no layer name (the hint has some), its kernel takes none of the stored dtypes,
// or its kernel is not one of linear layers; and for a backend that binds none.
void check_bindings(const PlanRequest& request, const Policy& policy,
                    std::span<const LinearKernel* const> catalogue);

}  // namespace octet
