#include "op/catalog.h"

#include <fmt/format.h>

namespace octet::detail {

std::vector<Refusal> device_refusals(DeviceKind kernel_device, Features needs,
                                     const DeviceInfo& device) {
  if (kernel_device != device.kind) {
    return {
        {RefusalCode::Device, fmt::format("runs on {}, the device is {}",
                                          octet::name(kernel_device), octet::name(device.kind))}};
  }
  const Features lacking = needs.minus(device.features);
  if (lacking.empty()) return {};
  return {
      {RefusalCode::Feature, fmt::format("needs {}, which the device lacks", to_string(lacking))}};
}

}  // namespace octet::detail
