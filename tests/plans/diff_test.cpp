// octet plan --diff.
#include <gmock/gmock.h>

#include "tests/integration/process.h"
#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kDynamic = "testing/data/fp8/ct-dynamic";

class PlanDiff : public ::testing::Test {
 protected:
  std::string plan(const std::string& name, std::vector<std::string> flags) {
    const std::string path = (folder.path() / name).string();
    std::vector<std::string> words{"plan", kDynamic, "--json"};
    words.insert(words.end(), flags.begin(), flags.end());
    write_bytes(path, run_octet(words).out);
    return path;
  }
  Ran diff(const std::string& a, const std::string& b, int status = 0) {
    const Ran ran = run_octet({"plan", "--diff", a, b});
    EXPECT_EQ(ran.status, status) << ran.err;
    return ran;
  }
  TinyFolder folder;
};

TEST_F(PlanDiff, NamesWhatChangedForLayersOperationsBytesAndNotes) {
  const std::string gpu = plan("gpu.json", {"--device", "profiles/b580.json"});
  const std::string cpu = plan("cpu.json", {"--device", "profiles/cpu-avx2.json"});
  const std::string out = diff(gpu, cpu).out;
  EXPECT_THAT(out,
              AllOf(HasSubstr("opencl \"Intel(R) Arc(TM) B580 Graphics\" -> cpu"),
                    HasSubstr("  model.layers.*.self_attn.q_proj  x2\n"
                              "    scheme   w8a16 -> w8a8\n"
                              "    kernel   opencl.linear.w8a16.f8."),
                    HasSubstr("-> cpu.linear.w8a8.f8.avx2\n"), HasSubstr("-> cpu.attention.avx2"),
                    HasSubstr("12.8 GB -> 68.7 GB"), HasSubstr("not needed -> cpu.quantize.avx2"),
                    HasSubstr("  - model.layers.*.mlp.up_proj: w8a16 instead")));
  EXPECT_EQ(diff(gpu, gpu).out, "the plans are the same\n");
}

TEST_F(PlanDiff, ShowsOnlyTheLayersThatChanged) {
  const std::string before = plan("a.json", {"--device", "profiles/b580.json"});
  const std::string after = plan("b.json", {"--device", "profiles/b580.json", "--kernel",
                                            "layers.1.*up_proj=opencl.linear.w8a16.f8.plain"});
  const std::string out = diff(before, after).out;
  EXPECT_THAT(out,
              AllOf(HasSubstr("linear layers (14 as before)\n  model.layers.*.mlp.up_proj  x1"),
                    HasSubstr("bound    no -> yes"), Not(HasSubstr("q_proj"))));
}

TEST_F(PlanDiff, RefusesWhatIsNoPlanNamingFileAndField) {
  const std::string good = plan("good.json", {});
  const auto refused = [&](const std::string& text) {
    const std::string path = (folder.path() / "bad.json").string();
    write_bytes(path, text);
    const Ran ran = diff(good, path, 2);
    EXPECT_THAT(ran.err, HasSubstr("bad.json"));
    return ran.err;
  };
  EXPECT_THAT(refused("{"), HasSubstr("a plan is JSON; byte"));
  EXPECT_THAT(refused("[]"), HasSubstr("expected an object, got array"));
  EXPECT_THAT(refused("{}"), HasSubstr("/device is missing"));
  EXPECT_THAT(refused(std::string(200'000, '[')), HasSubstr("a plan is JSON"));
  EXPECT_THAT(refused("1e999"), HasSubstr("too large"));
  nlohmann::json plan = read_json(good);
  for (const char* field : {"device", "linear", "operations", "bytes", "notes", "failures"}) {
    nlohmann::json broken = plan;
    broken[field] = 7;
    EXPECT_THAT(refused(broken.dump()), HasSubstr(std::string("/") + field));
  }
  plan["linear"][0]["n"] = -1;
  EXPECT_THAT(refused(plan.dump()), HasSubstr("/n: expected a whole number"));
  plan["linear"][0] = "layer";
  EXPECT_THAT(refused(plan.dump()), HasSubstr("/linear: expected objects, got string"));
}

TEST_F(PlanDiff, TheJsonSaysWhatTheTextDoes) {
  const auto changes = [](const std::string& a, const std::string& b) {
    const Ran ran = run_octet({"plan", "--diff", a, b, "--json"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    return nlohmann::json::parse(ran.out);
  };
  const std::string gpu = plan("gpu.json", {"--device", "profiles/b580.json"});
  const std::string cpu = plan("cpu.json", {"--device", "profiles/cpu-avx2.json"});
  const nlohmann::json json = changes(gpu, cpu);
  EXPECT_EQ(json["linear"][0]["layers"], "model.layers.*.self_attn.q_proj");
  EXPECT_EQ(json["linear"][0]["count"], 2);
  EXPECT_TRUE(json["linear"][0]["only_in"].is_null());
  EXPECT_EQ(json["linear"][0]["changes"][0],
            (nlohmann::json{{"field", "scheme"}, {"before", "w8a16"}, {"after", "w8a8"}}));
  EXPECT_THAT(json["bytes"].dump(), HasSubstr("\"field\":\"device\""));
  EXPECT_THAT(json["operations"].dump(), HasSubstr("not needed"));
  EXPECT_FALSE(json["notes"]["removed"].empty());
  const nlohmann::json same = changes(gpu, gpu);
  for (const char* list : {"head", "linear", "operations", "bytes"})
    EXPECT_TRUE(same[list].empty());
  EXPECT_GT(same["linear_unchanged"], 0);
}

TEST_F(PlanDiff, TakesTwoFilesAndNothingElse) {
  const std::string a = plan("a.json", {});
  EXPECT_THAT(run_octet({"plan", "--diff", a}).err, HasSubstr("two files"));
  EXPECT_THAT(run_octet({"plan", "--diff", a, a, "--timing"}).err, HasSubstr("--timing"));
  EXPECT_EQ(run_octet({"plan", kDynamic, a}).status, 2);
  EXPECT_EQ(run_octet({"plan", "--diff", a, "/no/such/plan.json"}).status, 2);
}

}  // namespace
}  // namespace octet
