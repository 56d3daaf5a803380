#include "cli/planned_model.h"

#include "base/error.h"

namespace octet {

void require_one_rank(const PlanOptions& options) {
  if (options.ranks == 1) return;
  throw_error(Code::CannotRun, fmt::format("-tp {}: this command runs one rank", options.ranks),
              "octet plan shows the shapes and bytes of more ranks");
}

PlannedModel plan_model(const std::string& model, const DeviceInfo& info,
                        std::unique_ptr<Device> device, PlanOptions options) {
  require_one_rank(options);
  return {std::move(device), prepare(model, false, info, std::move(options))};
}

}  // namespace octet
