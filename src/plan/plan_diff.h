#pragma once
// What changed between two plans that `octet plan --json` wrote.
#include <string>
#include <string_view>

namespace octet {

// The text of a plan and where it came from, for messages.
struct PlanText {
  std::string source;
  std::string_view text;
};

// The differences as text: model, device, kernel and scheme and shape of linear layers, kernels of
// operations, bytes, notes and failures; one line says so when there are none. Throws BadInput
// naming the file and the field of what is no plan.
std::string plan_diff(const PlanText& before, const PlanText& after);

// The same as one JSON object; docs/JSON.md names its fields.
std::string plan_diff_json(const PlanText& before, const PlanText& after);

}  // namespace octet
