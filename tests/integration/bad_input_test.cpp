// Broken checkpoints and disks: one message, the right exit status, nothing half-written.
#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <limits>

#include "tests/integration/bad_input.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Words = std::vector<std::string>;
namespace fs = std::filesystem;

TEST_F(BadInput, ASoundModelRuns) {
  write(sound());
  const Words words{"run", model().string(), "-p", "bread", "-n", "2"};
  const Ran ran = run_octet(words);
  EXPECT_EQ(ran.status, 0) << describe_run(words, ran);
}

TEST_F(BadInput, ABrokenHeader) {
  write(sound());
  std::string bytes = read_bytes(weights());
  bytes[20] = '}';
  write_bytes(weights(), bytes);
  EXPECT_THAT(both_fail(2), HasSubstr("model.safetensors"));
}

TEST_F(BadInput, AHeaderLongerThanTheFile) {
  write(sound());
  std::string bytes = read_bytes(weights());
  const uint64_t length = uint64_t{1} << 40;
  std::memcpy(bytes.data(), &length, sizeof length);
  write_bytes(weights(), bytes);
  EXPECT_THAT(both_fail(2), HasSubstr("1099511627776"));
}

TEST_F(BadInput, AnEmptyFileAndAnEmptyFolder) {
  fs::create_directories(model());
  EXPECT_THAT(fails({"plan", model().string()}, 2).err, HasSubstr("config.json"));
  write(sound());
  write_bytes(weights(), "");
  EXPECT_THAT(both_fail(2), HasSubstr("model.safetensors"));
}

TEST_F(BadInput, ATruncatedShard) {
  write(sound(), 2);
  const fs::path shard = model() / "model-00002-of-00002.safetensors";
  fs::resize_file(shard, fs::file_size(shard) - 8);
  EXPECT_THAT(both_fail(2), HasSubstr("model-00002-of-00002.safetensors"));
}

TEST_F(BadInput, AMissingShard) {
  write(sound(), 2);
  fs::remove(model() / "model-00001-of-00002.safetensors");
  EXPECT_THAT(both_fail(2), HasSubstr("model-00001-of-00002.safetensors"));
}

TEST_F(BadInput, FilesThatCannotBeRead) {
  write(sound());
  fs::remove(weights());
  fs::create_directory(weights());
  EXPECT_THAT(fails({"plan", model().string()}, 2).err, HasSubstr("model.safetensors"));
  fs::remove(weights());
  fs::create_symlink("model.safetensors", weights());  // a link to itself
  EXPECT_THAT(both_fail(4), HasSubstr("model.safetensors"));
}

TEST_F(BadInput, LinksThatCannotBeResolvedEndQuantizeByName) {
  write(sound(tiny_plain()));
  const std::string out = (folder_.path() / "out").string();
  for (const std::string& target : {std::string("LICENSE"), std::string(300, 'a')}) {
    fs::remove(model() / "LICENSE");
    fs::create_symlink(target, model() / "LICENSE");
    const Ran ran = run_octet({"quantize", model().string(), out});
    EXPECT_TRUE(ran.status == 2 || ran.status == 4) << ran.status;
    EXPECT_THAT(ran.err, HasSubstr("LICENSE"));
  }
}

// Bytes above 0x7F and control characters other than line feeds in what a terminal would get.
bool is_plain(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= 0x20 && c < 0x7F) || c == '\n'; });
}

TEST_F(BadInput, HostileBytesAndLengthsDoNotReachTheTerminal) {
  write(sound());
  const std::string in = model().string();
  const std::string config = read_bytes(model() / "config.json");
  write_bytes(model() / "config.json", "\xff\xfe{\x9b\"" + std::string(50'000, 'a'));
  for (const Words& words :
       {Words{"plan", in}, Words{"run", in, "-p", "hi"}, Words{"inspect", in}}) {
    const std::string err = fails(words, 2).err;
    EXPECT_TRUE(is_plain(err)) << err;
    EXPECT_LT(err.size(), 2000U);
  }
  write_bytes(model() / "config.json", config);
  const std::string weights_before = read_bytes(weights());
  const std::string longest(200'000, 'n');
  for (const std::string& entry :
       {R"({"a":{"dtype":")" + longest + R"(","shape":[1],"data_offsets":[0,1]}})",
        R"({")" + longest + R"(":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})"}) {
    std::string bytes(8, '\0');
    const uint64_t length = entry.size();
    std::memcpy(bytes.data(), &length, sizeof length);
    write_bytes(weights(), bytes + entry + "x");
    EXPECT_LT(fails({"plan", in}, 2).err.size(), 3000U);
    EXPECT_LT(run_octet({"inspect", in}).out.size(), 30'000U);
  }
  write_bytes(weights(), weights_before);
  const fs::path odd = folder_.path() / "m\xff\x9b[31m";
  fs::rename(model(), odd);
  const std::string report = run_octet({"report", odd.string(), "--skip-verify"}).out;
  EXPECT_TRUE(is_plain(report.substr(0, report.find("\n{")))) << report;
  EXPECT_TRUE(is_plain(run_octet({"plan", odd.string()}).out));
}

TEST_F(BadInput, AMissingScale) {
  TinyCheckpoint checkpoint = sound();
  checkpoint.remove(std::string(kQ) + ".weight_scale");
  write(checkpoint);
  EXPECT_THAT(both_fail(2), AllOf(HasSubstr(kQ), HasSubstr("weight_scale")));
}

TEST_F(BadInput, AMissingTensor) {
  TinyCheckpoint checkpoint = sound();
  checkpoint.remove("model.norm.weight");
  write(checkpoint);
  EXPECT_THAT(both_fail(2), HasSubstr("model.norm.weight"));
}

TEST_F(BadInput, ATensorTooMany) {
  TinyCheckpoint checkpoint = sound();
  checkpoint.add_normal("model.layers.0.surprise", DType::BF16, Shape{4}, 1);
  write(checkpoint);
  EXPECT_THAT(both_fail(2), HasSubstr("model.layers.0.surprise"));
}

TEST_F(BadInput, ANewlineInANameDoesNotBeginALineOfTheMessage) {
  TinyCheckpoint checkpoint = sound();
  checkpoint.add_normal("model.layers.0.surprise\nnote: all is well\x1b[2K", DType::BF16, Shape{4},
                        1);
  write(checkpoint);
  EXPECT_THAT(both_fail(2), AllOf(HasSubstr("surprise\\x0anote: all is well\\x1b[2K"),
                                  Not(HasSubstr("\nnote: all"))));
}

TEST_F(BadInput, AWrongShape) {
  TinyCheckpoint checkpoint = sound(tiny_plain());
  const std::string name = std::string(kQ) + ".weight";
  checkpoint.remove(name);
  checkpoint.add_normal(name, DType::BF16, {64, 60}, 1);
  write(checkpoint);
  EXPECT_THAT(both_fail(2), AllOf(HasSubstr(kQ), HasSubstr("60"), HasSubstr("64")));
}

TEST_F(BadInput, AScaleOfAWrongShape) {
  TinyCheckpoint checkpoint = sound();
  const std::string name = std::string(kQ) + ".weight_scale";
  checkpoint.remove(name);
  checkpoint.add_normal(name, DType::BF16, {63, 1}, 1);
  write(checkpoint);
  EXPECT_THAT(both_fail(2), AllOf(HasSubstr(name), HasSubstr("63")));
}

TEST_F(BadInput, AConfigThatIsNotJson) {
  write(sound());
  write_bytes(model() / "config.json", "{\"hidden_size\": 64,");
  EXPECT_THAT(both_fail(2), HasSubstr("config.json"));
}

TEST_F(BadInput, AConfigThatLacksAField) {
  TinyCheckpoint checkpoint = sound();
  checkpoint.config().erase("hidden_size");
  write(checkpoint);
  EXPECT_THAT(both_fail(2), HasSubstr("hidden_size"));
}

TEST_F(BadInput, AbsurdSizesInTheConfig) {
  for (const json& value : {json(-64), json(0), json(1e300), json("64"), json(int64_t{1} << 62)}) {
    TinyCheckpoint checkpoint = sound();
    checkpoint.config()["hidden_size"] = value;
    fs::remove_all(model());
    write(checkpoint);
    EXPECT_THAT(both_fail(2), HasSubstr("hidden_size")) << value;
  }
}

TEST_F(BadInput, AnUnknownArchitectureIsRefusedWithTheKnownOnes) {
  TinyCheckpoint checkpoint = sound();
  checkpoint.config()["architectures"] = {"NovelForCausalLM"};
  write(checkpoint);
  EXPECT_THAT(both_fail(3), AllOf(HasSubstr("NovelForCausalLM"), HasSubstr("LlamaForCausalLM"),
                                  HasSubstr("Qwen2ForCausalLM")));
}

TEST_F(BadInput, AnUnknownQuantisation) {
  TinyCheckpoint checkpoint = sound();
  checkpoint.config()["quantization_config"]["quant_method"] = "novel";
  write(checkpoint);
  const Ran ran = run_octet({"plan", model().string()});
  EXPECT_THAT(ran.status, testing::AnyOf(2, 3));
  EXPECT_THAT(ran.err, HasSubstr("novel"));
}

TEST_F(BadInput, WeightsThatAreNotFiniteStopTheAnswerNamingTheLayer) {
  TinyModel tiny = small_model();
  TinyCheckpoint checkpoint = tiny_model(tiny);
  // 0x7F is NaN in E4M3: one code of the first row of down_proj in layer 0.
  const std::string name = "model.layers.0.mlp.down_proj.weight";
  std::vector<std::byte> codes(static_cast<size_t>(tiny.hidden * tiny.intermediate),
                               std::byte{0x38});
  codes[5] = std::byte{0x7F};
  checkpoint.remove(name);
  checkpoint.add(name, DType::F8E4M3, {tiny.hidden, tiny.intermediate}, std::move(codes));
  write(checkpoint);
  const Ran ran = fails({"run", model().string(), "-p", "bread", "-n", "2", "--json"}, 4);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("not finite"), HasSubstr("model.layers.0.mlp")));
  EXPECT_THAT(ran.out, IsEmpty());
  const Ran score =
      fails({"perplexity", model().string(), "--file", "testing/data/text/bread.txt"}, 4);
  EXPECT_THAT(score.err, HasSubstr("model.layers.0.mlp"));
}

TEST_F(BadInput, ANanInTheHeadIsNamedToo) {
  TinyModel tiny = small_model(tiny_plain());
  TinyCheckpoint checkpoint = tiny_model(tiny);
  std::vector<float> head(static_cast<size_t>(tiny.vocab * tiny.hidden), 0.5F);
  head[70] = std::numeric_limits<float>::quiet_NaN();
  checkpoint.remove("lm_head.weight");
  checkpoint.add_values("lm_head.weight", DType::BF16, {tiny.vocab, tiny.hidden}, head);
  write(checkpoint);
  EXPECT_THAT(fails({"run", model().string(), "-p", "bread", "-n", "2"}, 4).err,
              HasSubstr("lm_head"));
}

TEST_F(BadInput, ATemplateThatDoesNotCompile) {
  write(sound());
  write_bytes(model() / "chat_template.jinja", "{% for m in messages %}{{ m.content }}");
  const Words run{"run", model().string(), "--chat", "-p", "bread"};
  EXPECT_THAT(fails(run, 2).err, AllOf(HasSubstr("line 1"), HasSubstr("endfor")));
  fails({"chat", model().string()}, 2);
}

class BadQuantize : public BadInput {
 protected:
  void SetUp() override { write(sound(tiny_plain())); }
  std::string out() const { return (folder_.path() / "out").string(); }
  Ran quantize(const Words& more, int status, const RunOptions& options = {}) const {
    Words words{"quantize", model().string(), out()};
    words.insert(words.end(), more.begin(), more.end());
    return fails(words, status, options);
  }
  // Names in the folder beside the model.
  std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
};

TEST_F(BadQuantize, AFullDiskLeavesNothing) {
  for (const uint64_t limit : {100U, 5000U, 60000U}) {
    const Ran ran = quantize({}, 4, {.max_file_bytes = limit});
    EXPECT_THAT(ran.err, HasSubstr("out")) << limit;
    EXPECT_THAT(left(), testing::ElementsAre("model")) << limit;
  }
}

TEST_F(BadQuantize, AnExistingFolderIsKept) {
  fs::create_directories(out());
  write_bytes(fs::path(out()) / "mine", "precious");
  EXPECT_THAT(quantize({}, 2).err, HasSubstr("out"));
  EXPECT_EQ(read_bytes(fs::path(out()) / "mine"), "precious");
  EXPECT_THAT(left(), testing::ElementsAre("model", "out"));
}

TEST_F(BadQuantize, AnOutputInsideTheInputIsRefused) {
  const std::string in = model().string();
  const size_t files = static_cast<size_t>(std::distance(fs::directory_iterator(in), {}));
  for (const std::string& to :
       {in, in + "/", in + "/out", in + "/../model/out", in + "/a/../b/c"}) {
    EXPECT_THAT(fails({"quantize", in, to}, 2).err,
                AllOf(HasSubstr("the checkpoint " + in), HasSubstr("name a folder beside it")))
        << to;
  }
  fs::create_directory_symlink(model(), folder_.path() / "link");
  const std::string linked = (folder_.path() / "link").string();
  EXPECT_THAT(fails({"quantize", in, linked + "/out"}, 2).err, HasSubstr("lies inside"));
  EXPECT_THAT(fails({"quantize", weights().string(), in + "/out"}, 2).err,
              HasSubstr("lies inside"));
  EXPECT_EQ(static_cast<size_t>(std::distance(fs::directory_iterator(in), {})), files);
  // A name that only begins alike is another folder.
  const Words words{"quantize", in, in + "-FP8"};
  const Ran ran = run_octet(words);
  EXPECT_EQ(ran.status, 0) << describe_run(words, ran);
}

TEST_F(BadQuantize, AMissingFolderAroundTheOutputIsNotMade) {
  const std::string to = (folder_.path() / "no" / "such" / "out").string();
  EXPECT_THAT(fails({"quantize", model().string(), to}, 2).err, HasSubstr("hint: mkdir -p '"));
  EXPECT_THAT(left(), testing::ElementsAre("model"));
}

TEST_F(BadQuantize, EverySignalToEndLeavesNothing) {
  TinyModel tiny = small_model(tiny_plain());
  tiny.vocab = 40000;  // a table that takes long enough to be caught
  fs::remove_all(model());
  write(tiny_model(tiny));
  const auto begun = [this] {
    return std::any_of(fs::directory_iterator(folder_.path()), {}, [](const auto& entry) {
      return entry.path().filename().string().starts_with(".out.partial-");
    });
  };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    int stopped = 0;
    // A run that was done before the signal came is whole; then it is tried again.
    for (int tries = 0; tries < 50 && stopped == 0; ++tries) {
      const Words words{"quantize", model().string(), out()};
      const Ran ran = run_octet(words, {.signal = signal, .when = begun});
      if (ran.status == 0) {
        fs::remove_all(out());
        continue;
      }
      ++stopped;
      EXPECT_EQ(ran.status, 130) << signal << ": " << describe_run(words, ran);
      EXPECT_THAT(ran.err, HasSubstr("interrupted")) << signal;
      EXPECT_THAT(left(), testing::ElementsAre("model")) << signal;
    }
    EXPECT_EQ(stopped, 1) << signal;
  }
}

TEST_F(BadQuantize, AFileInTheWayIsKept) {
  write_bytes(out(), "precious");
  quantize({}, 2);
  EXPECT_EQ(read_bytes(out()), "precious");
}

TEST_F(BadQuantize, AQuantisedCheckpointIsRefused) {
  const Words words{"quantize", "testing/data/fp8/ct-dynamic", out()};
  EXPECT_THAT(fails(words, 2).err, HasSubstr("quanti"));
  EXPECT_THAT(left(), testing::ElementsAre("model"));
}

TEST_F(BadQuantize, FlagsThatDoNotGoTogether) {
  EXPECT_THAT(quantize({"--scheme", "fp4"}, 2).err, HasSubstr("fp8-dynamic"));
  EXPECT_THAT(quantize({"--scheme", "fp8-static"}, 2).err, HasSubstr("--calibration"));
  EXPECT_THAT(quantize({"--calibration", "testing/data/text/bread.txt"}, 2).err,
              HasSubstr("--calibration"));
  EXPECT_THAT(quantize({"--scheme", "fp8-static", "--calibration", "/no/such/text"}, 2).err,
              HasSubstr("/no/such/text"));
  EXPECT_THAT(left(), testing::ElementsAre("model"));
}

TEST_F(BadQuantize, WeightsThatAreNotFinite) {
  TinyModel tiny = small_model(tiny_plain());
  TinyCheckpoint checkpoint = tiny_model(tiny);
  const std::string name = std::string(kQ) + ".weight";
  std::vector<float> values(64 * 64, 0.25F);
  values[77] = std::numeric_limits<float>::quiet_NaN();
  checkpoint.remove(name);
  checkpoint.add_values(name, DType::BF16, {64, 64}, values);
  fs::remove_all(model());
  write(checkpoint);
  EXPECT_THAT(quantize({}, 2).err, AllOf(HasSubstr(kQ), HasSubstr("element 77")));
  EXPECT_THAT(left(), testing::ElementsAre("model"));
}

// Not bad: every scheme makes a checkpoint that plans as its name says and answers.
class Quantize : public BadQuantize, public ::testing::WithParamInterface<const char*> {};

TEST_P(Quantize, MakesACheckpointThatRuns) {
  const std::string scheme = GetParam();
  Words words{"quantize", model().string(), out(), "--scheme", scheme};
  if (scheme == "fp8-static")
    words.insert(words.end(), {"--calibration", "testing/data/text/bread.txt"});
  const Ran made = run_octet(words);
  ASSERT_EQ(made.status, 0) << describe_run(words, made);
  EXPECT_THAT(made.out, AllOf(HasSubstr("14 linear layers"), HasSubstr(scheme)));
  EXPECT_THAT(left(), testing::ElementsAre("model", "out"));
  EXPECT_TRUE(fs::exists(fs::path(out()) / "tokenizer.json"));
  EXPECT_TRUE(fs::exists(fs::path(out()) / "chat_template.jinja"));
  const Words run{"run", out(), "-p", "bread", "-n", "4", "--json"};
  const Ran ran = run_octet(run);
  ASSERT_EQ(ran.status, 0) << describe_run(run, ran);
  EXPECT_EQ(json::parse(ran.out)["tokens"].size(), 4U);
  const json plan = json::parse(run_octet({"plan", out(), "--json"}).out);
  EXPECT_EQ(plan["linear"][0]["scheme"], scheme == "fp8-weight-only" ? "w8a16" : "w8a8");
}

INSTANTIATE_TEST_SUITE_P(Schemes, Quantize,
                         ::testing::Values("fp8-dynamic", "fp8-block", "fp8-static",
                                           "fp8-weight-only"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace octet
