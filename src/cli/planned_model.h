#pragma once
// What commands that judge a model open: its plan on this machine, without an engine.
#include <memory>
#include <string>

#include "device/device.h"
#include "model/prepare.h"

namespace octet {

struct PlannedModel {
  std::unique_ptr<Device> device;
  Prepared prepared;  // its plan may have failures
};

// Opens `model` and plans it for `info`, the device `device`. Throws as prepare() does, and
// CannotRun for more than one rank.
PlannedModel plan_model(const std::string& model, const DeviceInfo& info,
                        std::unique_ptr<Device> device, PlanOptions options);

// Throws CannotRun for more than one rank, which no command runs.
void require_one_rank(const PlanOptions& options);

}  // namespace octet
