// The device profiles of the tree.
#include "tests/plans/profiles.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Profiles, AreTheDevicesThatTheReadmeNames) {
  std::vector<std::string> names;
  for (const Profile& profile : tree_profiles()) names.push_back(profile.name);
  EXPECT_THAT(names,
              ElementsAre("a770", "b580", "b60", "cpu-avx2", "cpu-avx512-bf16", "h200", "max1550"));
}

TEST(Profiles, SayWhereEveryNumberIsFromAndWhen) {
  for (const Profile& profile : tree_profiles()) {
    const nlohmann::json json = read_json(profile.path);
    ASSERT_TRUE(json.contains("sources")) << profile.path;
    std::string all;
    for (const std::string line : json["sources"]) {
      EXPECT_THAT(line, ::testing::ContainsRegex("20[0-9][0-9]-[0-9][0-9]")) << profile.path;
      all += line + "\n";
    }
    for (const auto& [key, value] : json.items()) {
      if (key != "memory_bytes" && key != "max_allocation_bytes" && key != "features") continue;
      EXPECT_THAT(all, HasSubstr(key)) << profile.path;
    }
  }
}

TEST(Profiles, OfIntelGpusHaveTheWidthsOfTheirMatrixEngines) {
  for (const Profile& profile : tree_profiles()) {
    if (profile.info.kind != DeviceKind::OpenCl) continue;
    const bool narrow = profile.name == "a770";
    EXPECT_EQ(profile.info.features.has(Feature::ClDpas8), narrow) << profile.name;
    EXPECT_EQ(profile.info.features.has(Feature::ClSubgroup8), narrow) << profile.name;
    EXPECT_EQ(profile.info.features.has(Feature::ClDpas16), !narrow) << profile.name;
    EXPECT_TRUE(profile.info.features.has(Feature::ClSubgroup16)) << profile.name;
    EXPECT_GT(profile.info.max_allocation_bytes, 0U) << profile.name;
  }
}

}  // namespace
}  // namespace octet
