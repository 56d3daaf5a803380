#include "device/probe_cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace octet {
namespace {

using detail::CpuidWords;

// A processor with everything, under an operating system that saves every register.
CpuidWords everything() {
  return {.leaf1_ecx = 1U << 12 | 1U << 27 | 1U << 28 | 1U << 29,
          .leaf7_ebx = 1U << 5 | 1U << 16 | 1U << 17 | 1U << 30 | 1U << 31,
          .leaf7_ecx = 1U << 1 | 1U << 11,
          .leaf7_1_eax = 1U << 5,
          .xcr0 = 0xE7};
}

constexpr Features kAvx2 = {Feature::Avx2, Feature::F16c};
constexpr Features kAll = {Feature::Avx2,       Feature::F16c,       Feature::Avx512,
                           Feature::Avx512Bf16, Feature::Avx512Vbmi, Feature::Avx512Vnni};

TEST(ProbeCpu, FindsEveryFeatureOfACompleteProcessor) {
  EXPECT_EQ(detail::features_of(everything()), kAll);
}

TEST(ProbeCpu, FindsNothingWithoutTheOperatingSystem) {
  CpuidWords words = everything();
  words.xcr0 = 0;
  EXPECT_EQ(detail::features_of(words), Features{});
  words.xcr0 = 3;
  EXPECT_EQ(detail::features_of(words), Features{});
}

TEST(ProbeCpu, HidesAvx512WhenItsRegistersAreNotSaved) {
  CpuidWords words = everything();
  for (uint64_t missing : {0x20U, 0x40U, 0x80U}) {
    words.xcr0 = 0xE7 & ~missing;
    EXPECT_EQ(detail::features_of(words), kAvx2) << "XCR0 lacks " << missing;
  }
}

TEST(ProbeCpu, WantsFmaForAvx2) {
  CpuidWords words = everything();
  words.leaf1_ecx &= ~(1U << 12);
  EXPECT_EQ(detail::features_of(words), Features{Feature::F16c});
}

TEST(ProbeCpu, WantsEveryPartOfAvx512) {
  for (int bit : {16, 17, 30, 31}) {
    CpuidWords words = everything();
    words.leaf7_ebx &= ~(1U << bit);
    EXPECT_EQ(detail::features_of(words), kAvx2) << "bit " << bit;
  }
}

TEST(ProbeCpu, DescribesThisMachine) {
  const DeviceInfo info = probe_cpu();
  EXPECT_EQ(info.kind, DeviceKind::Cpu);
  EXPECT_FALSE(info.name.empty());
  EXPECT_GE(info.threads, 1);
  EXPECT_GT(info.memory_bytes, uint64_t{16} << 20);
}

TEST(MaskIsa, KeepsWhatIsAtOrBelowTheLevel) {
  EXPECT_EQ(mask_isa(kAll, "avx512"), kAll);
  EXPECT_EQ(mask_isa(kAll, "avx2"), kAvx2);
  EXPECT_EQ(mask_isa(kAll, "baseline"), Features{});
}

TEST(MaskIsa, LeavesOtherDevicesAlone) {
  const Features gpu = {Feature::ClDpas16, Feature::Sm90};
  EXPECT_EQ(mask_isa(gpu, "baseline"), gpu);
}

TEST(MaskIsa, RefusesAnotherWord) {
  try {
    mask_isa(kAll, "sse9");
    FAIL() << "took it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::BadInput);
    EXPECT_THAT(error.message(), testing::HasSubstr("\"sse9\""));
    EXPECT_THAT(error.message(), testing::HasSubstr("avx2"));
  }
}

TEST(MeminfoBytes, ReadsOneLine) {
  const char* text = "MemTotal:       100 kB\nMemAvailable:    42 kB\nBuffers: 1 kB\n";
  EXPECT_EQ(detail::meminfo_bytes(text, "MemAvailable"), 42U * 1024);
  EXPECT_EQ(detail::meminfo_bytes(text, "MemTotal"), 100U * 1024);
  EXPECT_EQ(detail::meminfo_bytes(text, "Mem"), std::nullopt);
  EXPECT_EQ(detail::meminfo_bytes("MemAvailable: soon", "MemAvailable"), std::nullopt);
  EXPECT_EQ(detail::meminfo_bytes("", "MemAvailable"), std::nullopt);
}

TEST(StatValue, ReadsOneLine) {
  EXPECT_EQ(detail::stat_value("cache 7\nanon 12\nanon_thp 3\n", "anon"), 12U);
  EXPECT_EQ(detail::stat_value("anon_thp 3\n", "anon"), std::nullopt);
}

TEST(CgroupLimit, ReadsANumberAndNoLimit) {
  EXPECT_EQ(detail::cgroup_limit("1048576\n"), 1048576U);
  EXPECT_EQ(detail::cgroup_limit("max\n"), std::nullopt);
  EXPECT_EQ(detail::cgroup_limit(""), std::nullopt);
}

TEST(CgroupPath, PrefersTheMemoryControllerOfVersion1) {
  const auto v1 = detail::cgroup_path("5:cpu,cpuacct:/a\n4:memory:/b/c\n0::/d\n");
  EXPECT_EQ(v1, (detail::CgroupPath{true, "/b/c"}));
  const auto v2 = detail::cgroup_path("0::/user.slice\n");
  EXPECT_EQ(v2, (detail::CgroupPath{false, "/user.slice"}));
  EXPECT_EQ(detail::cgroup_path("nonsense"), std::nullopt);
}

}  // namespace
}  // namespace octet
