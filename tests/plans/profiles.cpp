#include "tests/plans/profiles.h"

#include <algorithm>

#include "base/mapped_file.h"

namespace octet {

std::vector<Profile> tree_profiles() {
  std::vector<Profile> profiles;
  for (const auto& entry : std::filesystem::directory_iterator("profiles")) {
    const std::filesystem::path& path = entry.path();
    profiles.push_back(
        {path.stem().string(), path,
         device_info_from_json(read_text_file(path, uint64_t{1} << 20), path.string())});
  }
  std::sort(profiles.begin(), profiles.end(),
            [](const Profile& a, const Profile& b) { return a.name < b.name; });
  return profiles;
}

std::vector<Profile> all_profiles() {
  std::vector<Profile> profiles = tree_profiles();
  DeviceInfo plain;
  plain.kind = DeviceKind::OpenCl;
  plain.name = "an OpenCL device without features";
  plain.memory_bytes = uint64_t{8} << 30;
  plain.max_allocation_bytes = uint64_t{2} << 30;
  profiles.push_back({"plain", {}, plain});
  return profiles;
}

}  // namespace octet
