#include "tests/conformance/devices.h"

#include <algorithm>

namespace octet::conformance {
namespace {

#if defined(OCTET_EMULATED)
std::vector<Level> find_levels() {
  DeviceInfo info = probe_cpu();
  info.kind = DeviceKind::Emulated;
  info.features = {};
  return {{"emulated", info}};
}
#else
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
#endif

}  // namespace

const std::vector<Level>& levels() {
  static const std::vector<Level> all = find_levels();
  return all;
}

const DeviceInfo& best_device() {
  return levels().back().info;
}

std::unique_ptr<Device> make_device(int threads) {
  return make_cpu_device(best_device(), threads);
}

std::string test_name(std::string_view kernel_name) {
  std::string word(kernel_name);
  std::replace_if(
      word.begin(), word.end(),
      [](char c) { return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9'); },
      '_');
  return word;
}

}  // namespace octet::conformance
