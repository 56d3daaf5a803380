// octet inspect as a command; its rules are tested beside the code (src/evaluate/inspect_test.cpp).
#include <gmock/gmock.h>

#include "tests/integration/process.h"
#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

class Inspect : public ::testing::Test {
 protected:
  std::string model() const { return (folder_.path() / "model").string(); }
  TinyFolder folder_;
};

// A model in which one scale of q_proj of layer 1 is zero.
void write_damaged(const std::string& dir) {
  TinyCheckpoint checkpoint = tiny_model(small_model());
  const std::string name = "model.layers.1.self_attn.q_proj.weight_scale";
  std::vector<float> values(64, 0.001F);
  values[3] = 0;
  checkpoint.remove(name);
  checkpoint.add_values(name, DType::BF16, Shape{64, 1}, values);
  checkpoint.write(dir);
  add_text_files(dir);
}

TEST_F(Inspect, ASoundModelIsExit0) {
  write_small_model(model());
  const Ran ran = run_octet({"inspect", model()});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("0 errors, 0 warnings"));
  EXPECT_THAT(ran.err, IsEmpty());
}

TEST_F(Inspect, AFindingIsExit1InBothForms) {
  write_damaged(model());
  const Ran ran = run_octet({"inspect", model()});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("error scale-zero"), HasSubstr("[3, 0]")));
  const Ran data = run_octet({"inspect", model(), "--json"});
  EXPECT_EQ(data.status, 1);
  const json result = json::parse(data.out);
  EXPECT_EQ(result["findings"][0]["rule"], "scale-zero");
  EXPECT_EQ(result["findings"][0]["severity"], "error");
}

TEST_F(Inspect, WhatOpensNowhereIsExit2) {
  EXPECT_EQ(run_octet({"inspect", model()}).status, 2);
  fs::create_directories(model());
  const Ran ran = run_octet({"inspect", model()});
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, HasSubstr("octet: "));
  EXPECT_EQ(run_octet({"inspect"}).status, 2);
}

TEST_F(Inspect, AnAbsentShardIsAFindingAndNoEnd) {
  endless_checkpoint(small_model()).write(model(), 3);
  add_text_files(model());
  fs::remove(fs::path(model()) / "model-00002-of-00003.safetensors");
  EXPECT_EQ(run_octet({"plan", model()}).status, 2);
  const Ran ran = run_octet({"inspect", model()});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("error shard-absent: model-00002-of-00003.safetensors"),
                             HasSubstr("note left-out")));
}

TEST_F(Inspect, NamesOfFilesDoNotReachTheTerminalAsControls) {
  TinyCheckpoint checkpoint = tiny_model(small_model());
  checkpoint.add_normal("model.layers.0.x\x1b[2K", DType::BF16, Shape{4}, 1);
  checkpoint.write(model());
  const Ran ran = run_octet({"inspect", model()});
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(ran.out.find('\x1b'), std::string::npos);
}

TEST_F(Inspect, ThreadsChangeNothing) {
  write_damaged(model());
  EXPECT_EQ(run_octet({"inspect", model(), "-t", "1"}).out,
            run_octet({"inspect", model(), "-t", "3"}).out);
}

}  // namespace
}  // namespace octet
