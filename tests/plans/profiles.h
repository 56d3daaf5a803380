#pragma once
// The device profiles of the tree, and one of an OpenCL device without any feature.
#include <filesystem>
#include <vector>

#include "device/info.h"

namespace octet {

struct Profile {
  std::string name;  // "b580"
  std::filesystem::path path;
  DeviceInfo info;
};

// Every file of profiles/, by name.
std::vector<Profile> tree_profiles();

// The same and "plain", an OpenCL device with no feature at all, as PoCL is.
std::vector<Profile> all_profiles();

}  // namespace octet
