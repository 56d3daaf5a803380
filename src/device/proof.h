#pragma once
// What is known of kernels on hardware that they were made for.
#include <string_view>

#include "device/info.h"

namespace octet {

// Where kernels of a device with these needs have run; README.md says more.
std::string_view proof_of(DeviceKind kind, Features needs);

}  // namespace octet
