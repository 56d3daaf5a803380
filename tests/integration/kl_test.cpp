// octet kl as a command; its arithmetic is tested beside the code (src/evaluate/kl_test.cpp).
#include <gmock/gmock.h>

#include "tests/integration/process.h"
#include "tests/integration/terminal.h"
#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;
namespace fs = std::filesystem;

class Kl : public ::testing::Test {
 protected:
  std::string path(const char* name) const { return (folder_.path() / name).string(); }
  std::string text() const {
    write_bytes(path("text"), "the bread and the water, the bread and the water, and so on");
    return path("text");
  }

  json measure(Words words) const {
    words.insert(words.begin(), "kl");
    words.insert(words.end(), {"--file", text(), "--json"});
    const Ran ran = run_octet(words);
    EXPECT_EQ(ran.status, 0) << describe_run(words, ran);
    EXPECT_THAT(ran.err, IsEmpty());
    return ran.status == 0 ? json::parse(ran.out) : json();
  }

  TinyFolder folder_;
};

TEST_F(Kl, AModelIsLikeItselfAndItsNllIsThatOfPerplexity) {
  write_small_model(path("a"));
  const json r = measure({path("a"), path("a")});
  EXPECT_EQ(r["kl_max"], 0);
  EXPECT_EQ(r["top1_agreement"], 1);
  EXPECT_EQ(r["nll"], r["reference_nll"]);
  const Ran perplexity = run_octet({"perplexity", path("a"), "--file", text(), "--json"});
  const json p = json::parse(perplexity.out);
  EXPECT_EQ(r["tokens"], p["tokens"]);
  EXPECT_EQ(r["scored"], p["scored"]);
  EXPECT_NEAR(r["nll"].get<double>(), p["nll"].get<double>(), 1e-5);
}

TEST_F(Kl, FlagsOfThePlanAreTheModelsAndReferenceFlagsTheOthers) {
  write_small_model(path("a"));
  const Words same{path("a"), path("a"), "--dtype", "float32", "--reference-dtype", "float32"};
  EXPECT_EQ(measure(same)["kl_max"], 0);
  const json w8a16 = measure({path("a"), path("a"), "--dtype", "float32", "--reference-dtype",
                              "float32", "--prefer", "w8a16"});
  EXPECT_GT(w8a16["kl_mean"], 0);
  const json both = measure({path("a"), path("a"), "--dtype", "float32", "--reference-dtype",
                             "float32", "--prefer", "w8a16", "--reference-prefer", "w8a16"});
  EXPECT_EQ(both["kl_max"], 0);
  const json kernel = measure({path("a"), path("a"), "--kernel", "cpu.linear.w8a8.f8.ref",
                               "--reference-kernel", "cpu.linear.w8a8.f8.ref"});
  EXPECT_EQ(kernel["kl_max"], 0);
  const json isa =
      measure({path("a"), path("a"), "--max-isa", "baseline", "--reference-max-isa", "baseline"});
  EXPECT_EQ(isa["kl_max"], 0);
}

TEST_F(Kl, TheTextNamesEveryNumber) {
  write_small_model(path("a"));
  const Ran ran = run_octet({"kl", path("a"), path("a"), "--file", text()});
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("mean"), HasSubstr("max"), HasSubstr("99.9"),
                             HasSubstr("same best token"), HasSubstr("nll")));
}

TEST_F(Kl, TokenizersThatDifferAreExit2) {
  write_small_model(path("a"));
  write_small_model(path("b"));
  const fs::path file = fs::path(path("b")) / "tokenizer.json";
  std::string tokenizer = read_bytes(file);
  const std::string from = "<|im_start|>", to = "<|im_begin|>";
  for (size_t at = tokenizer.find(from); at != std::string::npos; at = tokenizer.find(from, at))
    tokenizer.replace(at, from.size(), to);
  write_bytes(file, tokenizer);
  const Words words{"kl", path("a"), path("b"), "--file", text()};
  const Ran ran = run_octet(words);
  EXPECT_EQ(ran.status, 2) << describe_run(words, ran);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("the tokenizers differ: id 1"), HasSubstr("<|im_begin|>")));
}

TEST_F(Kl, VocabulariesOfOtherSizesAndMissingWordsAreExit2) {
  write_small_model(path("a"));
  TinyModel larger = small_model();
  larger.vocab = 408;
  endless_checkpoint(larger).write(path("b"));
  add_text_files(path("b"));
  const Ran ran = run_octet({"kl", path("a"), path("b"), "--file", text()});
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("400"), HasSubstr("408")));
  EXPECT_EQ(run_octet({"kl", path("a"), path("a")}).status, 2);
  EXPECT_EQ(run_octet({"kl", path("a"), "--file", text()}).status, 2);
  EXPECT_EQ(run_octet({"kl", path("a"), path("a"), "--file", path("none")}).status, 2);
  write_bytes(path("empty"), "");
  EXPECT_EQ(run_octet({"kl", path("a"), path("a"), "--file", path("empty")}).status, 2);
}

TEST_F(Kl, CtrlCIsExit130) {
  write_small_model(path("a"));
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += "the bread and the water ";
  write_bytes(path("many"), many);
  Terminal terminal({"kl", path("a"), path("a"), "--file", path("many"), "--max-isa", "baseline"});
  terminal.expect("comparing");
  terminal.type(Terminal::kCtrlC);
  EXPECT_EQ(terminal.wait(), 130);
}

}  // namespace
}  // namespace octet
