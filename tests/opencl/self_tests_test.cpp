// The self-tests of the matrix engine on the emulated one, sound and with planted faults.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/mapped_file.h"
#include "device/opencl.h"
#include "device/opencl_self_tests.h"

namespace octet {
namespace {

constexpr Features kEngines = {Feature::ClDpas8, Feature::ClDpas16};

std::filesystem::path cache() {
  return std::filesystem::temp_directory_path() / "octet-opencl-tests";
}

// What the tests leave of both engines when `engine` stands in for them.
Features left_by(std::string_view engine) {
  const OpenClClaims claims{.adds = kEngines,
                            .drops = {},
                            .option = "-DOCTET_DPAS",
                            .prelude = std::string(engine),
                            .without = " -cl-intel-256-GRF-per-thread"};
  return passed_self_tests(*make_opencl_device(0, cache(), claims), kEngines);
}

std::string emulation() {
  return read_text_file(OCTET_DPAS_EMULATION, 1 << 20);
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

class SelfTests : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!probe_opencl(0, cache()).features.has(Feature::ClSubgroup16))
      GTEST_SKIP() << "this runtime has no subgroups to emulate the engine with";
  }
};

TEST_F(SelfTests, LeaveASoundEngine) {
  EXPECT_EQ(left_by(emulation()), kEngines);
}

TEST_F(SelfTests, TakeAnEngineThatDoesNotCompile) {
  EXPECT_TRUE(left_by(emulation() + "\nint broken(").empty());
}

TEST_F(SelfTests, TakeAnEngineThatExchangesLanes) {
  const std::string wide =
      replaced(emulation(), "(int)part, (uint)(2 * i))", "(int)part, (uint)(2 * i + 1))");
  EXPECT_EQ(left_by(wide), Features{Feature::ClDpas8});
  const std::string narrow = replaced(emulation(), "(part, (uint)i)", "(part, (uint)(i ^ 1))");
  EXPECT_EQ(left_by(narrow), Features{Feature::ClDpas16});
}

TEST_F(SelfTests, TakeAnEngineThatFlushesSmallNumbers) {
  // Products of the least codes with small inputs.
  const std::string flushing =
      replaced(emulation(), "return as_float(bits << 16);",
               "return fabs(as_float(bits << 16)) < 0x1p-6f ? 0.0f : as_float(bits << 16);");
  EXPECT_TRUE(left_by(flushing).empty());
}

TEST(SelfTestsOfDevices, AreKeptUnderANameThatHoldsTheirVersions) {
  EXPECT_NE(opencl_self_test_versions().find("dpas16 "), std::string::npos);
  EXPECT_NE(opencl_self_test_versions().find("dpas8 "), std::string::npos);
}

}  // namespace
}  // namespace octet
