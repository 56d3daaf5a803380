// The reports that Octet was made for: models that should run on Intel GPUs, in their published
// shapes, planned by the program before a weight is read.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/integration/process.h"
#include "tests/integration/tiny_models.h"
#include "tests/plans/profiles.h"
#include "tests/plans/published_models.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Planned {
  int status;
  json data;
  std::string err;
};

Planned plan(const std::filesystem::path& dir, const std::string& profile,
             std::vector<std::string> flags = {}) {
  std::vector<std::string> words{
      "plan", dir.string(), "--device", "profiles/" + profile + ".json", "--max-model-len",
      "6000", "--json"};
  words.insert(words.end(), flags.begin(), flags.end());
  const Ran ran = run_octet(words);
  EXPECT_TRUE(ran.status == 0 || ran.status == 3) << describe_run(words, ran);
  return {ran.status, ran.out.empty() ? json() : json::parse(ran.out), ran.err};
}

// Every layer has a kernel: `quantised` begins the names of those of 8-bit weights.
void expect_kernels(const Planned& planned, const std::string& quantised) {
  ASSERT_FALSE(planned.data["linear"].empty());
  for (const json& group : planned.data["linear"]) {
    ASSERT_TRUE(group["kernel"].is_string()) << group["layers"];
    const bool head = group["layers"] == "lm_head";
    EXPECT_THAT(group["kernel"].get<std::string>(),
                StartsWith(head ? "opencl.linear.plain." : quantised));
  }
  for (const json& op : planned.data["operations"])
    EXPECT_TRUE(op["kernel"].is_string()) << op["op"];
}

class Reports : public ::testing::TestWithParam<std::pair<Published, std::string>> {};

TEST_P(Reports, Of32BillionWeightsHaveKernelsAndTrueBytesAtEveryNumberOfRanks) {
  const auto& [model, kernels] = GetParam();
  const TinyFolder folder;
  const auto dir = write_published(folder.path() / "model", model);
  for (const auto& [profile, ranks, status] :
       {std::tuple{"b580", 1, 3}, std::tuple{"b580", 2, 3}, std::tuple{"b580", 4, 0},
        std::tuple{"b60", 1, 3}, std::tuple{"b60", 2, 0}, std::tuple{"b60", 4, 0}}) {
    SCOPED_TRACE(fmt::format("{} -tp {}", profile, ranks));
    const Planned planned = plan(dir, profile, {"-tp", std::to_string(ranks)});
    EXPECT_EQ(planned.status, status);
    expect_kernels(planned, kernels);
    const double weights = planned.data["bytes"]["weights"].get<double>() * ranks / 1e9;
    EXPECT_NEAR(weights, 34.3, 0.05 * ranks);  // norms and float32 scales are in every rank
    // 64 layers, 8 key-value heads of 128, keys and values, two bytes each.
    EXPECT_EQ(planned.data["bytes"]["kv_per_token"], 64 * 8 * 128 * 2 * 2 / ranks);
    if (status == 3) {
      EXPECT_THAT(planned.err, AllOf(HasSubstr("does not fit"), HasSubstr("Graphics")));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Qwen3, Reports,
    ::testing::Values(std::pair{Published::Qwen3Block, "opencl.linear.w8a8."},
                      std::pair{Published::Qwen3BlockFp8, "opencl.linear.w8a8."},
                      std::pair{Published::Qwen3BlockWeightOnly, "opencl.linear.w8a16."}));

TEST(ReportsOfLlama, ChannelAndTensorWeightsTakeW8A16AndW8A8WhenAsked) {
  for (const Published model : {Published::LlamaChannel, Published::LlamaTensor}) {
    const TinyFolder folder;
    const auto dir = write_published(folder.path() / "model", model);
    for (const char* profile : {"b580", "b60", "a770", "max1550"}) {
      SCOPED_TRACE(profile);
      const Planned planned = plan(dir, profile);
      EXPECT_EQ(planned.status, 0) << planned.err;
      expect_kernels(planned, "opencl.linear.w8a16.");
      expect_kernels(plan(dir, profile, {"--prefer", "w8a8"}), "opencl.linear.w8a8.");
      expect_kernels(plan(dir, profile, {"--linear-backend", "xpu"}), "opencl.linear.w8a8.");
    }
  }
}

TEST(ReportsOfBlocks, WithoutTheirKernelsThePlanFailsWithEveryReason) {
  const TinyFolder folder;
  const auto dir = write_published(folder.path() / "model", Published::Qwen3Block);
  std::string disabled;
  std::vector<std::string> names;
  for (const json& row : json::parse(run_octet({"kernels", "--json"}).out)) {
    if (row["op"] != "linear" || row["device"] != "opencl") continue;
    names.push_back(row["name"]);
    if (row["takes"].get<std::string>().find("block") == std::string::npos) continue;
    disabled += (disabled.empty() ? "" : ",") + names.back();
  }
  ASSERT_FALSE(disabled.empty());
  const Planned planned = plan(dir, "b60", {"-tp", "2", "--disable", disabled});
  EXPECT_EQ(planned.status, 3);
  EXPECT_THAT(planned.err, AllOf(HasSubstr("cannot plan model.layers.*.self_attn.q_proj"),
                                 HasSubstr("f8e4m3/block128x128"), HasSubstr("not in {"),
                                 HasSubstr("disabled by --disable")));
  for (const std::string& name : names) EXPECT_THAT(planned.err, HasSubstr(name));
}

TEST(ReportsOfAllocations, ABufferOverTheLimitIsNamedWithBothNumbers) {
  const TinyFolder folder;
  const auto dir = write_published(folder.path() / "model", Published::LlamaChannel);
  json profile = read_json("profiles/b60.json");
  profile["max_allocation_bytes"] = 100'000'000;
  write_bytes(folder.path() / "small.json", profile.dump());
  const Ran ran = run_octet({"plan", dir.string(), "--device",
                             (folder.path() / "small.json").string(), "--max-model-len", "6000"});
  EXPECT_EQ(ran.status, 3);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("a weight of lm_head needs 1.05 GB"),
                             HasSubstr("the embedding needs 1.05 GB (1050673152 bytes)"),
                             HasSubstr("the KV cache needs 789 MB (788529152 bytes)"),
                             HasSubstr("at most 100 MB (100000000 bytes) at once"),
                             HasSubstr("try: a smaller --max-model-len")));
  // Context that nobody asked for is shortened to what one buffer holds.
  profile["max_allocation_bytes"] = 1'100'000'000;
  write_bytes(folder.path() / "small.json", profile.dump());
  const Ran shorter = run_octet(
      {"plan", dir.string(), "--device", (folder.path() / "small.json").string(), "--json"});
  EXPECT_EQ(shorter.status, 0) << shorter.err;
  const json data = json::parse(shorter.out);
  EXPECT_LE(data["bytes"]["kv"], 1'100'000'000);
  EXPECT_GT(data["max_model_len"], 8000);
}

}  // namespace
}  // namespace octet
