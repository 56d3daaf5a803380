#pragma once
// From a path to a plan: what every command does before a weight is read.
#include <filesystem>
#include <vector>

#include "model/describe.h"

namespace octet {

// A checkpoint with everything its headers say, and the plan for one device.
struct Prepared {
  Checkpoint checkpoint;
  ModelConfig config;
  Description description;
  std::vector<LinearRecord> records;
  ModelPlan plan;
};

// Opens `path`, reads its headers and plans. Throws BadInput for what is wrong with the checkpoint
// or the options, CannotRun for an unknown architecture; a plan that cannot run is returned with
// its failures. Cost: milliseconds; no weight is read.
Prepared prepare(const std::filesystem::path& path, bool headers_only, const DeviceInfo& device,
                 PlanOptions options);

}  // namespace octet
