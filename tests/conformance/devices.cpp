#include "tests/conformance/devices.h"

#include <algorithm>

namespace octet::conformance {
const std::vector<Level>& levels() {
  static const std::vector<Level> all = find_levels();
  return all;
}

const DeviceInfo& best_device() {
  return levels().back().info;
}

std::unique_ptr<Device> make_device(int threads) {
  return open_device(best_device(), threads);
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
