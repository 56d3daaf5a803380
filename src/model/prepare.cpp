#include "model/prepare.h"

namespace octet {
Prepared prepare(const std::filesystem::path& path, bool headers_only, const DeviceInfo& device,
                 PlanOptions options) {
  Checkpoint checkpoint = Checkpoint::open(path, headers_only);
  ModelConfig config = model_config(checkpoint);
  Description description = describe(config);
  std::vector<std::string> notes;
  std::vector<LinearRecord> records = linear_records(checkpoint, config, description, notes);
  PlanRequest request =
      plan_request(checkpoint, config, description, records, options.policy.carrier);
  request.notes.insert(request.notes.end(), notes.begin(), notes.end());
  ModelPlan plan = make_plan(std::move(request), device, std::move(options));
  return {std::move(checkpoint), std::move(config), std::move(description), std::move(records),
          std::move(plan)};
}

}  // namespace octet
