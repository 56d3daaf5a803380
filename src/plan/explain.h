#pragma once
// A plan for people and for programs.
#include <string>

#include "plan/model_plan.h"

namespace octet {

// The plan as text: device, every distinct linear layer with what was chosen and what could also
// run, every reason of a refusal once with its kernels, operations, bytes, notes. Control
// characters in names are shown escaped.
std::string explain(const ModelPlan& plan);

// The same as one JSON object; docs/JSON.md names its fields.
std::string to_json(const ModelPlan& plan);

// "34.3 GB", "812 kB": decimal units, three digits.
std::string human_bytes(uint64_t bytes);

}  // namespace octet
