// ORG/NAME[@REVISION] in every command that takes a model.
#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/integration/process.h"
#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

const std::string kCommit(40, 'a');
constexpr const char* kVariables[] = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME",
                                      "XDG_CACHE_HOME"};

// A cache with one model under refs/main, and nothing else in the environment that names one.
class HubCommands : public ::testing::Test {
 protected:
  HubCommands() {
    for (const char* variable : kVariables) ::unsetenv(variable);
    add_model("name", tiny_fp8_dynamic());
    ::setenv("HF_HUB_CACHE", root().c_str(), 1);
  }
  ~HubCommands() override {
    for (const char* variable : kVariables) ::unsetenv(variable);
  }
  fs::path root() const { return folder_.path() / "hub"; }
  fs::path repository(const std::string& name = "name") const {
    return root() / ("models--org--" + name);
  }
  void add_model(const std::string& name, const LayerQuant& quant) const {
    write_small_model(repository(name) / "snapshots" / kCommit, quant);
    fs::create_directories(repository(name) / "refs");
    write_bytes(repository(name) / "refs" / "main", kCommit);
  }
  fs::path snapshot() const { return repository() / "snapshots" / kCommit; }

  static std::string succeeds(const Words& words, const std::string& input = {}) {
    const Ran ran = run_octet(words, {.input = input});
    EXPECT_EQ(ran.status, 0) << describe_run(words, ran);
    return ran.out;
  }
  static std::string refused(const Words& words) {
    const Ran ran = run_octet(words);
    EXPECT_EQ(ran.status, 2) << describe_run(words, ran);
    EXPECT_EQ(ran.out, "");
    return ran.err;
  }

  TinyFolder folder_;
};

TEST_F(HubCommands, InspectSaysHowToFetchAnAbsentShard) {
  fs::remove_all(snapshot());
  tiny_model(small_tiny_model(tiny_fp8_dynamic())).write(snapshot(), 2);
  fs::remove(snapshot() / "model-00002-of-00002.safetensors");
  const Ran ran = run_octet({"inspect", "org/name"});
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("shard-absent"),
                             HasSubstr("hf download org/name model-00002-of-00002.safetensors")));
  fs::create_symlink("gone", snapshot() / "model-00002-of-00002.safetensors");
  EXPECT_THAT(run_octet({"inspect", "org/name"}).out,
              HasSubstr("hf download org/name model-00002-of-00002.safetensors"));
}

TEST_F(HubCommands, ACacheThatCannotBeReadIsNotAnEmptyOne) {
  fs::remove_all(repository());
  fs::create_symlink(repository().filename(), repository());  // a link to itself
  const Ran ran = run_octet({"plan", "org/name"});
  EXPECT_EQ(ran.status, 4) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr(repository().string()));
}

TEST_F(HubCommands, EveryCommandTakesAModelByItsName) {
  EXPECT_THAT(succeeds({"plan", "org/name"}), ::testing::StartsWith("org/name: LlamaForCausalLM"));
  EXPECT_EQ(nlohmann::json::parse(succeeds({"plan", "org/name@" + kCommit, "--json"}))["model"],
            "org/name");
  EXPECT_EQ(nlohmann::json::parse(run_octet({"inspect", "org/name", "--json"}).out)["model"],
            "org/name");
  const Words run{"run", "", "-p", "bread", "-n", "4"};
  Words by_name = run, by_path = run;
  by_name[1] = "org/name@main";
  by_path[1] = snapshot().string();
  EXPECT_EQ(succeeds(by_name), succeeds(by_path));
  succeeds({"run", "org/name", "--revision", "main", "--chat", "-p", "bread", "-n", "2"});
  succeeds({"chat", "org/name", "-n", "2"}, "hello\n");
  const fs::path text = folder_.path() / "text";
  write_bytes(text, "bread and butter");
  succeeds({"perplexity", "org/name", "--file", text.string()});
  add_model("plain", tiny_plain());
  succeeds({"quantize", "org/plain", (folder_.path() / "out").string()});
}

TEST_F(HubCommands, TheCacheIsWhereTheEnvironmentSays) {
  ::unsetenv("HF_HUB_CACHE");
  const auto found_by = [&](const char* variable, const fs::path& value, const fs::path& hub) {
    fs::create_directories(hub.parent_path());
    fs::rename(root(), hub);
    ::setenv(variable, value.c_str(), 1);
    succeeds({"plan", "org/name"});
    ::unsetenv(variable);
    fs::rename(hub, root());
  };
  const fs::path base = folder_.path() / "base";
  found_by("HUGGINGFACE_HUB_CACHE", base, base);
  found_by("HF_HOME", base, base / "hub");
  found_by("XDG_CACHE_HOME", base, base / "huggingface" / "hub");
  const std::string home = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "";
  found_by("HOME", base, base / ".cache" / "huggingface" / "hub");
  ::setenv("HOME", base.c_str(), 1);
  found_by("HF_HOME", "~/hf", base / "hf" / "hub");
  ::setenv("HOME", home.c_str(), 1);
  ::setenv("HF_HUB_CACHE", root().c_str(), 1);
  ::setenv("HF_HOME", "/nowhere", 1);
  succeeds({"plan", "org/name"});  // the first that is set
}

TEST_F(HubCommands, WhatIsMissingIsNamedWithTheCommandThatFetchesIt) {
  EXPECT_THAT(refused({"run", "org/other", "-p", "x"}),
              AllOf(HasSubstr("model org/other: no such folder, and not in the Hugging Face cache"),
                    HasSubstr("hint: fetch it with `hf download org/other --revision main`")));
  EXPECT_THAT(refused({"plan", "org/name", "--revision", "v9"}),
              AllOf(HasSubstr("has no refs/v9; refs there: main"),
                    HasSubstr("`hf download org/name --revision v9`")));
  EXPECT_THAT(refused({"plan", snapshot().string(), "--revision", "v9"}),
              HasSubstr("is a file or folder and has no revisions"));
  fs::resize_file(snapshot() / "tokenizer.json", fs::file_size(snapshot() / "tokenizer.json") / 2);
  EXPECT_THAT(refused({"run", "org/name", "-p", "x"}),
              AllOf(HasSubstr("tokenizer.json: "),
                    HasSubstr("`hf download org/name tokenizer.json --revision " + kCommit +
                              " --force-download`")));
  EXPECT_THAT(run_octet({"inspect", "org/name"}).out, HasSubstr(" --force-download`"));
  fs::remove(snapshot() / "tokenizer.json");
  EXPECT_THAT(refused({"run", "org/name", "-p", "x"}),
              AllOf(HasSubstr("has no tokenizer.json"),
                    HasSubstr("`hf download org/name tokenizer.json --revision " + kCommit + "`")));
}

TEST_F(HubCommands, ANameThatIsTooLongIsBadInput) {
  EXPECT_THAT(refused({"plan", "a/b@" + std::string(5000, 'x')}),
              AllOf(HasSubstr("of 5004 bytes is too long"), HasSubstr("ORG/NAME[@REVISION]")));
}

TEST_F(HubCommands, NamesCannotLeadOutOfTheCache) {
  for (const char* name : {"../name", "org/..", "org/../name", "/org/name", "org/name@../../x"}) {
    EXPECT_THAT(refused({"plan", name}), HasSubstr("No such file or directory")) << name;
  }
  EXPECT_THAT(refused({"plan", "org/name", "--revision", "../x"}),
              HasSubstr("is not a branch, a tag or a commit"));
}

}  // namespace
}  // namespace octet
