#include "model/prepare.h"

#include "base/error.h"

namespace octet {
namespace {

// Runs one step; its errors name the model unless they do.
template <class Step>
auto naming(const Checkpoint& checkpoint, const Step& step) {
  try {
    return step();
  } catch (const Error& error) {
    const std::string dir = checkpoint.dir().string();
    if (error.message().starts_with(dir)) throw;
    throw error.with(dir);
  }
}

}  // namespace

Prepared prepare(const std::filesystem::path& path, bool headers_only, const DeviceInfo& device,
                 PlanOptions options) {
  Checkpoint checkpoint = Checkpoint::open(path, headers_only);
  ModelConfig config = naming(checkpoint, [&] { return model_config(checkpoint); });
  Description description = describe(config);
  std::vector<std::string> notes;
  std::vector<LinearRecord> records =
      naming(checkpoint, [&] { return linear_records(checkpoint, config, description, notes); });
  PlanRequest request = naming(checkpoint, [&] {
    return plan_request(checkpoint, config, description, records, options.policy.carrier);
  });
  request.notes.insert(request.notes.end(), notes.begin(), notes.end());
  ModelPlan plan = make_plan(std::move(request), device, std::move(options));
  return {std::move(checkpoint), std::move(config), std::move(description), std::move(records),
          std::move(plan)};
}

}  // namespace octet
