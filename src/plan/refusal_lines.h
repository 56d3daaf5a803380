#pragma once
// Refusals for people: every reason once, with the kernels that it stands against.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "op/catalog.h"

namespace octet {

// One kernel's refusals; none: it is left out.
struct RefusedKernel {
  std::string_view name;
  std::span<const Refusal> refusals;
};

// "  - REASON" and below it the names of all kernels that say so, folded at 100 columns, each line
// after `indent`. A kernel with several reasons is named under each. Reasons that speak of the
// stored weight as a whole (RefusalCode::Scheme) come last: they hold for every device.
std::string refusal_lines(std::span<const RefusedKernel> kernels, std::string_view indent);

}  // namespace octet
