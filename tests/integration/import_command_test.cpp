// octet import as its users meet it.
#include <gmock/gmock.h>

#include "testing/tiny_gguf.h"
#include "tests/integration/process.h"
#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

constexpr const char* kGolden = "testing/data/gguf/llama3.gguf";

class ImportCommand : public ::testing::Test {
 protected:
  std::string out() const { return (folder_.path() / "out").string(); }
  std::string gguf() const { return (folder_.path() / "m.gguf").string(); }

  // Runs, expects that exit status and one message, and that no folder is left.
  std::string fails(const Words& words, int status, const RunOptions& options = {}) const {
    const Ran ran = run_octet(words, options);
    EXPECT_EQ(ran.status, status) << describe_run(words, ran);
    EXPECT_THAT(ran.err, StartsWith("octet: "));
    EXPECT_THAT(ran.err, HasSubstr("\n  hint: ")) << describe_run(words, ran);
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      EXPECT_FALSE(entry.is_directory()) << entry.path();
    }
    return ran.err;
  }

  TinyFolder folder_;
};

TEST_F(ImportCommand, MakesAFolderThatEveryCommandTakes) {
  const Ran ran = run_octet({"import", kGolden, out()});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out, AllOf(StartsWith(out() + ": LlamaForCausalLM in bf16, 21 tensors in 1 file"),
                             HasSubstr(" from ")));
  EXPECT_EQ(run_octet({"plan", out()}).status, 0);
  EXPECT_EQ(run_octet({"run", out(), "-p", "Hello", "-n", "3"}).status, 0);
  EXPECT_EQ(run_octet({"run", out(), "--chat", "-p", "Hello", "-n", "3"}).status, 0);
  EXPECT_EQ(run_octet({"quantize", out(), out() + "-FP8"}).status, 0);
}

TEST_F(ImportCommand, EveryGoldenRunsFromShardsAsFromOneFile) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator("testing/data/gguf")) {
    if (entry.path().extension() != ".gguf") continue;
    const std::string one = out() + std::to_string(files), many = one + "-shards";
    ASSERT_EQ(run_octet({"import", entry.path().string(), one}).status, 0) << entry.path();
    ASSERT_EQ(run_octet({"import", entry.path().string(), many, "--max-shard-size", "20k"}).status,
              0);
    EXPECT_TRUE(fs::exists(fs::path(many) / "model.safetensors.index.json"));
    Words words{"run", one, "-p", "Hello world", "-n", "4", "--temperature", "0"};
    const Ran whole = run_octet(words);
    EXPECT_EQ(whole.status, 0) << describe_run(words, whole);
    words[1] = many;
    EXPECT_EQ(run_octet(words).out, whole.out);
    ++files;
  }
  EXPECT_GE(files, 6);
}

TEST_F(ImportCommand, PrintsNotesToTheStandardError) {
  TinyGguf file = tiny_gguf();
  file.remove("tokenizer.ggml.pre");
  file.write(gguf());
  const Ran ran = run_octet({"import", gguf(), out()});
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.err, HasSubstr("note: tokenizer.ggml.pre is absent"));
}

TEST_F(ImportCommand, RefusesBrokenFiles) {
  EXPECT_THAT(fails({"import", gguf(), out()}, 2), HasSubstr("No such file or directory"));
  write_bytes(gguf(), "");
  EXPECT_THAT(fails({"import", gguf(), out()}, 2), HasSubstr("is truncated"));
  const std::string whole = read_bytes(kGolden);
  for (const size_t size : {size_t{3}, size_t{20}, size_t{500}, whole.size() - 100}) {
    write_bytes(gguf(), whole.substr(0, size));
    EXPECT_THAT(fails({"import", gguf(), out()}, 2), HasSubstr("m.gguf: "));
  }
  TinyGguf other = tiny_gguf();
  other.set_text("general.architecture", "rwkv");
  other.write(gguf());
  EXPECT_THAT(fails({"import", gguf(), out()}, 3), HasSubstr("known: llama, qwen2, qwen3"));
}

TEST_F(ImportCommand, LeavesNothingBehindOnAFullDisk) {
  EXPECT_THAT(fails({"import", kGolden, out()}, 4, {.max_file_bytes = 30'000}),
              HasSubstr("cannot write"));
}

TEST_F(ImportCommand, RefusesAnOutputThatIsThere) {
  write_bytes(gguf(), read_bytes(kGolden));
  EXPECT_THAT(fails({"import", gguf(), gguf()}, 2), HasSubstr("is a file, expected a folder"));
  EXPECT_EQ(read_bytes(gguf()), read_bytes(kGolden));
}

TEST_F(ImportCommand, OtherCommandsNameItForAGguf) {
  const Ran ran = run_octet({"plan", kGolden});
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, HasSubstr("`octet import FILE.gguf FOLDER`"));
  fs::copy_file(kGolden, folder_.path() / "model.gguf");
  EXPECT_THAT(run_octet({"plan", folder_.path().string()}).err,
              HasSubstr("`octet import FILE.gguf FOLDER`"));
}

}  // namespace
}  // namespace octet
