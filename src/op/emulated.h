#pragma once
// How a kernel record changes when its file is compiled through SIMDe: another device and name, no
// needs.
#include <cstring>
#include <string_view>

#include "device/info.h"

namespace octet {

// "cpu.x.y" becomes "emulated.x.y"; the characters live as long as the program.
inline std::string_view emulated_name(std::string_view kernel_name) {
  constexpr std::string_view kPrefix = "emulated";
  const std::string_view rest = kernel_name.substr(kernel_name.find('.'));
  char* text = new char[kPrefix.size() + rest.size()];
  std::memcpy(text, kPrefix.data(), kPrefix.size());
  std::memcpy(text + kPrefix.size(), rest.data(), rest.size());
  return {text, kPrefix.size() + rest.size()};
}

// The same kernel as the emulated device lists it.
template <class K>
K emulated(K kernel) {
  kernel.name = emulated_name(kernel.name);
  kernel.device = DeviceKind::Emulated;
  kernel.needs = {};
  return kernel;
}

}  // namespace octet
