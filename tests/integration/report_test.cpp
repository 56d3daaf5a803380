// octet report: everything a stranger needs, and nothing private.
#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/integration/process.h"
#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace fs = std::filesystem;

json json_of(const std::string& report) {
  return json::parse(report.substr(report.find("\n{") + 1));
}

class ReportCommand : public ::testing::Test {
 protected:
  std::string model() const { return (folder_.path() / "model").string(); }
  std::string out() const { return (folder_.path() / "report.txt").string(); }
  TinyFolder folder_;
};

TEST_F(ReportCommand, HoldsPlanProbeVerifyAndEnvironment) {
  write_small_model(model());
  const Ran ran = run_octet({"report", model(), "--out", out(), "--prefer", "w8a16"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, IsEmpty());
  EXPECT_THAT(ran.err, HasSubstr("report.txt"));
  const std::string text = read_bytes(out());
  EXPECT_THAT(text, AllOf(HasSubstr("octet        " OCTET_VERSION),
                          HasSubstr("verify       passed"), HasSubstr("--prefer w8a16")));
  const json report = json_of(text);
  EXPECT_EQ(report["octet_report"], 1);
  EXPECT_TRUE(report["verify"]["passed"].get<bool>());
  EXPECT_EQ(report["plan"]["architecture"], "LlamaForCausalLM");
  EXPECT_EQ(report["probe"]["kind"], "cpu");
  for (const char* fact : {"os", "kernel", "cpu", "memory", "threads", "compiler", "variables"}) {
    EXPECT_TRUE(report["environment"].contains(fact)) << fact;
  }
  EXPECT_THAT(report["problems"], IsEmpty());
}

TEST_F(ReportCommand, FilesOfTheCheckpointAreNotOverwritten) {
  write_small_model(model());
  const fs::path config = fs::path(model()) / "config.json";
  fs::create_symlink(config, folder_.path() / "link");
  fs::create_directory_symlink(model(), folder_.path() / "other");
  fs::rename(fs::path(model()) / "model.safetensors", folder_.path() / "blob");
  fs::create_symlink("../blob", fs::path(model()) / "model.safetensors");
  const std::string before = read_bytes(config);
  for (const fs::path& out :
       {config, folder_.path() / "link", folder_.path() / "other" / "config.json",
        fs::path(model()) / "model.safetensors", folder_.path() / "blob"}) {
    const Ran ran = run_octet({"report", model(), "--skip-verify", "-o", out.string()});
    EXPECT_EQ(ran.status, 2) << out;
    EXPECT_THAT(ran.err, HasSubstr("is a file of the checkpoint"));
  }
  EXPECT_EQ(read_bytes(config), before);
  const std::string fresh = (fs::path(model()) / "report.txt").string();
  EXPECT_EQ(run_octet({"report", model(), "--skip-verify", "-o", fresh}).status, 0);
}

TEST_F(ReportCommand, ADashIsTheStandardOutput) {
  write_small_model(model());
  const Ran ran = run_octet({"report", model(), "--out", "-", "--skip-verify"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(json_of(ran.out)["octet_report"], 1);
  EXPECT_FALSE(fs::exists("-"));
}

TEST_F(ReportCommand, HasNoSecretsAndNoHomeFolder) {
  const fs::path home = folder_.path() / "ann";
  const std::string inside = (home / "models" / "m").string();
  fs::create_directories(home / "models");
  write_small_model(inside);
  const char* before = std::getenv("HOME");
  const std::string kept = before == nullptr ? "" : before;
  setenv("HOME", home.c_str(), 1);
  setenv("HF_TOKEN", "hf_abcdefghijklmnopqrstuvwxyz", 1);
  setenv("HF_HOME", (home / "hf").c_str(), 1);
  setenv("LC_ALL", "hf_abcdefghijklmnopqrstuvwxyz", 1);
  fs::remove(fs::path(inside) / "config.json");  // the message names the path
  const Ran ran = run_octet({"report", inside});
  for (const char* name : {"HF_TOKEN", "HF_HOME", "LC_ALL"}) unsetenv(name);
  setenv("HOME", kept.c_str(), 1);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(Not(HasSubstr(home.string())), Not(HasSubstr("hf_abcdef")),
                             Not(HasSubstr("HF_TOKEN"))));
  const json report = json_of(ran.out);
  EXPECT_EQ(report["environment"]["variables"]["HF_HOME"], "~/hf");
  EXPECT_EQ(report["environment"]["variables"]["LC_ALL"], "(removed)");
  EXPECT_THAT(report["problems"][0].get<std::string>(), HasSubstr("~/models/m"));
}

TEST_F(ReportCommand, AModelThatDoesNotOpenOrRunIsReportedWithTheReason) {
  const Ran absent = run_octet({"report", model()});
  EXPECT_EQ(absent.status, 0);
  EXPECT_TRUE(json_of(absent.out)["plan"].is_null());
  EXPECT_THAT(absent.out, HasSubstr("problem "));
  write_small_model(model());
  const Ran large = run_octet({"report", model(), "--max-model-len", "1g"});
  EXPECT_EQ(large.status, 0);
  const json report = json_of(large.out);
  EXPECT_FALSE(report["plan"]["runnable"].get<bool>());
  EXPECT_TRUE(report["verify"].is_null());
  EXPECT_EQ(report["problems"].size(), 1U);
}

TEST_F(ReportCommand, AWrongKernelIsInTheHead) {
  write_small_model(model());
  const Ran ran = run_octet({"report", model()}, {.program = planted_program()});
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.out, HasSubstr("FAILED; cpu.linear.w8a8.f8.planted wrong"));
}

TEST_F(ReportCommand, VerifyCanBeLeftOut) {
  write_small_model(model());
  const Ran ran = run_octet({"report", model(), "--skip-verify"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(json_of(ran.out)["verify"].is_null());
}

TEST_F(ReportCommand, AnOutputThatCannotBeMadeIsAnErrorAndLeavesNothing) {
  write_small_model(model());
  EXPECT_EQ(run_octet({"report", model(), "--out", model()}).status, 2);
  const Ran full = run_octet({"report", model(), "--out", out()}, {.max_file_bytes = 1000});
  EXPECT_EQ(full.status, 4) << full.err;
  EXPECT_FALSE(fs::exists(out()));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace octet
