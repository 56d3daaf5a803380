#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "device/info.h"

namespace octet {
namespace {

using testing::HasSubstr;

constexpr char kGood[] =
    R"({"kind": "cpu", "name": "box", "features": ["avx2", "f16c"], "memory_bytes": 1024, "threads": 8})";

// The message of the refusal of `text`, which must be bad input.
std::string refusal(const std::string& text) {
  try {
    device_info_from_json(text, "box.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::BadInput);
    return error.message();
  }
  ADD_FAILURE() << "took " << text;
  return "";
}

// kGood with one piece replaced.
std::string with(const std::string& piece, const std::string& other) {
  std::string text = kGood;
  text.replace(text.find(piece), piece.size(), other);
  return text;
}

TEST(Profile, ReadsWhatProbeWrites) {
  const DeviceInfo probed = probe_cpu();
  EXPECT_EQ(device_info_from_json(to_json(probed), "probe"), probed);
}

TEST(Profile, ReadsAnotherMachine) {
  const DeviceInfo info = device_info_from_json(kGood, "box.json");
  EXPECT_EQ(info, (DeviceInfo{DeviceKind::Cpu, "box", {Feature::Avx2, Feature::F16c}, 1024, 8}));
}

TEST(Profile, KeepsEveryKindAndFeature) {
  const std::pair<DeviceKind, Features> kinds[] = {
      {DeviceKind::Cpu,
       {Feature::Avx2, Feature::F16c, Feature::Avx512, Feature::Avx512Bf16, Feature::Avx512Vbmi,
        Feature::Avx512Vnni}},
      {DeviceKind::OpenCl,
       {Feature::ClFp16, Feature::ClBf16, Feature::ClExactDivide, Feature::ClSubgroup8,
        Feature::ClSubgroup16, Feature::ClDpas8, Feature::ClDpas16, Feature::ClUsm}},
      {DeviceKind::Cuda, {Feature::Sm80, Feature::Sm89, Feature::Sm90}}};
  int features = 0;
  for (const auto& entry : kinds) {
    const DeviceKind kind = entry.first;
    entry.second.each([&](Feature feature) {
      const DeviceInfo info{kind, "x \"y\"\n", {feature}, 1, 1};
      EXPECT_EQ(device_info_from_json(to_json(info), "x"), info);
      ++features;
    });
  }
  EXPECT_EQ(features, kFeatureCount);
}

TEST(Profile, RefusesFeaturesOfAnotherKindOfDevice) {
  EXPECT_THAT(refusal(with("\"cpu\"", "\"opencl\"")),
              AllOf(HasSubstr("/features"), HasSubstr("features of opencl"), HasSubstr("avx2"),
                    HasSubstr("cl_usm")));
  EXPECT_THAT(refusal(with("\"f16c\"", "\"cl_fp16\"")), HasSubstr("features of cpu"));
}

TEST(Profile, RefusesAFieldThatIsThereTwice) {
  EXPECT_THAT(refusal(with("\"threads\": 8", "\"threads\": 8, \"threads\": 9")),
              AllOf(HasSubstr("/threads"), HasSubstr("twice")));
}

TEST(Profile, SourcesAreLines) {
  const std::string good = with("\"threads\"", R"("sources": ["a page"], "threads")");
  EXPECT_EQ(device_info_from_json(good, "box.json"), device_info_from_json(kGood, "box.json"));
  EXPECT_THAT(refusal(with("\"threads\"", R"("sources": 4, "threads")")), HasSubstr("/sources"));
  EXPECT_THAT(refusal(with("\"threads\"", R"("sources": [4], "threads")")), HasSubstr("/sources"));
}

TEST(Profile, NamesTheSourceAndTheField) {
  EXPECT_THAT(refusal(with("\"cpu\"", "\"tpu\"")),
              AllOf(HasSubstr("box.json: /kind"), HasSubstr("tpu")));
  EXPECT_THAT(refusal(with("\"cpu\"", "\"emulated\"")), HasSubstr("/kind"));
  EXPECT_THAT(refusal(with("\"box\"", "7")), HasSubstr("/name"));
  EXPECT_THAT(refusal(with("\"box\"", "\"\"")), HasSubstr("/name"));
  EXPECT_THAT(refusal(with("\"f16c\"", "\"avx3\"")),
              AllOf(HasSubstr("/features"), HasSubstr("avx3"), HasSubstr("avx512_vbmi")));
  EXPECT_THAT(refusal(with("[\"avx2\", \"f16c\"]", "\"avx2\"")), HasSubstr("/features"));
  EXPECT_THAT(refusal(with("[\"avx2\", \"f16c\"]", "[1]")), HasSubstr("/features"));
  EXPECT_THAT(refusal(with("1024", "-1024")),
              AllOf(HasSubstr("/memory_bytes"), HasSubstr("-1024")));
  EXPECT_THAT(refusal(with("1024", "1e3")), HasSubstr("/memory_bytes"));
  EXPECT_THAT(refusal(with("1024", "0")), HasSubstr("/memory_bytes"));
  EXPECT_THAT(refusal(with("1024", "18446744073709551616")), HasSubstr("/memory_bytes"));
  EXPECT_THAT(refusal(with(": 8", ": 0")), HasSubstr("/threads"));
  EXPECT_THAT(refusal(with(": 8", ": 1000000")), HasSubstr("/threads"));
}

TEST(Profile, RefusesMissingAndUnknownFields) {
  EXPECT_THAT(refusal(with(", \"threads\": 8", "")),
              AllOf(HasSubstr("/threads"), HasSubstr("missing")));
  EXPECT_THAT(refusal(with("\"threads\"", "\"thread\"")), HasSubstr("/thread"));
}

TEST(Profile, RefusesWhatIsNoJsonObject) {
  EXPECT_THAT(refusal("[1]"), HasSubstr("an object"));
  EXPECT_THAT(refusal(""), HasSubstr("box.json"));
  EXPECT_THAT(refusal("{\"kind\": "), HasSubstr("box.json"));
  EXPECT_THAT(refusal(std::string(100000, '[')), HasSubstr("box.json"));
  EXPECT_THAT(refusal("\xff\xfe"), HasSubstr("box.json"));
}

}  // namespace
}  // namespace octet
