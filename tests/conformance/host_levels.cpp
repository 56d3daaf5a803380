// The levels of the suite that runs this host's own instructions.
#include "tests/conformance/devices.h"

namespace octet::conformance {

std::vector<Level> find_levels() {
  const DeviceInfo host = probe_cpu();
  std::vector<Level> found;
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    DeviceInfo masked = host;
    masked.features = mask_isa(host.features, isa);
    if (found.empty() || !(masked.features == found.back().info.features)) {
      found.push_back({isa, masked});
    }
  }
  return found;
}

std::unique_ptr<Device> open_device(const DeviceInfo& info, int threads) {
  return make_cpu_device(info, threads);
}

}  // namespace octet::conformance
