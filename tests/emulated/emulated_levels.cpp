// The one level of the suite that runs kernels through SIMDe.
#include "tests/conformance/devices.h"

namespace octet::conformance {

std::vector<Level> find_levels() {
  DeviceInfo info = probe_cpu();
  info.kind = DeviceKind::Emulated;
  info.features = {};
  return {{"emulated", info}};
}

std::unique_ptr<Device> open_device(const DeviceInfo& info, int threads) {
  return make_cpu_device(info, threads);
}

}  // namespace octet::conformance
