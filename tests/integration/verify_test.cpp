// octet verify, and the quarantine of what it finds.
#include <gmock/gmock.h>

#include <cstring>

#include "tests/integration/process.h"
#include "tests/integration/terminal.h"
#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Words = std::vector<std::string>;
namespace fs = std::filesystem;

constexpr const char* kPlanted = "cpu.linear.w8a8.f8.planted";

class Verify : public ::testing::Test {
 protected:
  std::string model() const { return (folder_.path() / "model").string(); }
  std::string list() const { return (folder_.path() / "bad.json").string(); }

  Ran runs(const Words& words, int status, const char* program = nullptr) const {
    Ran ran = run_octet(words, {.program = program});
    EXPECT_EQ(ran.status, status) << describe_run(words, ran);
    return ran;
  }
  Ran planted(const Words& words, int status) const {
    return runs(words, status, planted_program());
  }

  TinyFolder folder_;
};

TEST_F(Verify, TheKernelsOfEveryFormAreRight) {
  for (const LayerQuant& quant :
       {tiny_plain(), tiny_plain(DType::F32), tiny_plain(DType::F16), tiny_fp8_dynamic(),
        tiny_fp8_static(), tiny_fp8_block(32, 32), tiny_fp8_weight_only(), tiny_mxfp8()}) {
    fs::remove_all(model());
    write_small_model(model(), quant);
    for (const char* isa : {"baseline", "avx2", "avx512"}) {
      const Ran ran = runs({"verify", model(), "--max-isa", isa, "-t", "2"}, 0);
      EXPECT_THAT(ran.out, AllOf(HasSubstr("right: "), Not(HasSubstr("WRONG"))));
      EXPECT_THAT(ran.err, IsEmpty());
    }
  }
}

TEST_F(Verify, SubnormalWeightsAndScalesAreNoFaultOfAKernel) {
  TinyModel tiny;
  tiny.quant = tiny_plain(DType::F32);
  TinyCheckpoint plain = tiny_model(tiny);
  const std::string name = "model.layers.0.mlp.up_proj.weight";
  std::vector<float> values;
  for (const double value : plain.values(name)) {
    const bool first_row = values.size() < static_cast<size_t>(tiny.hidden);
    values.push_back(static_cast<float>(value * (first_row ? 1e-38 : 1)));
  }
  plain.remove(name);
  plain.add_values(name, DType::F32, Shape{tiny.intermediate, tiny.hidden}, values);
  plain.write(model());
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    runs({"verify", model(), "--max-isa", isa}, 0);
  }
  for (const float scale : {1e-40F, 2e-38F}) {
    fs::remove_all(model());
    tiny.quant = tiny_fp8_static();
    TinyCheckpoint fp8 = tiny_model(tiny);
    const std::string input = "model.layers.0.mlp.up_proj.input_scale";
    fp8.remove(input);
    fp8.add_values(input, DType::F32, Shape{1}, std::span(&scale, 1));
    fp8.write(model());
    for (const char* isa : {"baseline", "avx2", "avx512"}) {
      runs({"verify", model(), "--max-isa", isa}, 0);
    }
  }
}

TEST_F(Verify, ValuesThatFloat32CannotMultiplyAreDamageAndNoFaultOfAKernel) {
  struct Case {
    LayerQuant quant;
    std::string tensor;
    DType dtype;
    Shape shape;
    float value;
  };
  const std::string up = "model.layers.0.mlp.up_proj";
  const TinyModel sizes = small_tiny_model(tiny_plain());
  const Shape matrix{sizes.intermediate, sizes.hidden};
  for (const Case& c :
       {Case{tiny_fp8_dynamic(), up + ".weight_scale", DType::BF16, {sizes.intermediate, 1}, 3e38F},
        Case{tiny_fp8_dynamic(), up + ".weight_scale", DType::F32, {sizes.intermediate, 1}, 1e36F},
        Case{tiny_fp8_static(), up + ".weight_scale", DType::F32, {1}, 3e38F},
        Case{tiny_fp8_static(), up + ".input_scale", DType::F32, {1}, 1e36F},
        Case{tiny_fp8_weight_only(),
             up + ".weight_scale",
             DType::F32,
             {sizes.intermediate, 1},
             1e36F},
        Case{tiny_plain(), up + ".weight", DType::BF16, matrix, 3e38F},
        Case{tiny_plain(), "model.norm.weight", DType::BF16, {sizes.hidden}, 3e38F},
        Case{tiny_plain(), "lm_head.weight", DType::BF16, {sizes.vocab, sizes.hidden}, 3e38F}}) {
    fs::remove_all(model());
    TinyCheckpoint checkpoint = tiny_model(small_tiny_model(c.quant));
    checkpoint.remove(c.tensor);
    checkpoint.add_values(c.tensor, c.dtype, c.shape,
                          std::vector<float>(static_cast<size_t>(c.shape.elements()), c.value));
    checkpoint.write(model());
    for (const char* isa : {"baseline", "avx2", "avx512"}) {
      const Ran ran = runs({"verify", model(), "--max-isa", isa, "--quarantine", list()}, 1);
      EXPECT_THAT(ran.out, AllOf(HasSubstr("DAMAGED: tensor \"" + c.tensor),
                                 Not(HasSubstr("WRONG")), HasSubstr("too large, the first, ")));
      EXPECT_FALSE(fs::exists(list()));
    }
    const json result = json::parse(runs({"verify", model(), "--json"}, 1).out);
    EXPECT_EQ(result["damaged"][0]["damage"], "too large");
    runs({"inspect", model()}, 1);
  }
}

TEST_F(Verify, EntriesOfKernelsThatThisProgramLacksAreNoted) {
  write_small_model(model());
  write_bytes(list(), R"({"octet_quarantine": 1, "entries": [{"device": "cpu", "device_name": "x",
      "kernel": "cpu.norm.gone", "problem": {"input": "b"}, "reason": "r", "octet": "0"}]})");
  for (const Words& words : {Words{"verify", model(), "--quarantine", list()},
                             Words{"run", model(), "-p", "hi", "--quarantine", list()}}) {
    EXPECT_THAT(runs(words, 0).err,
                AllOf(HasSubstr("octet: note: --quarantine"), HasSubstr("\"cpu.norm.gone\"")));
  }
}

TEST_F(Verify, TheJsonSaysWhatWasRunAndHowNearItCame) {
  write_small_model(model());
  const json result = json::parse(runs({"verify", model(), "--json"}, 0).out);
  EXPECT_TRUE(result["passed"].get<bool>());
  ASSERT_EQ(result["linear"].size(), 8U);
  for (const json& layers : result["linear"]) {
    EXPECT_EQ(layers["checked"], layers["count"]) << layers;
    // 1, 5 and 64 tokens, every output: the matrices are small.
    EXPECT_EQ(layers["values"], 70 * layers["n"].get<int64_t>() * layers["count"].get<int64_t>());
    EXPECT_GT(layers["snr_db"], 100) << layers;
    EXPECT_GT(layers["worst"], 0) << layers;
    EXPECT_LT(layers["worst"], 1) << layers;
    EXPECT_TRUE(layers["failure"].is_null());
    if (layers["scheme"] == "w8a8") {
      EXPECT_GT(layers["input_snr_db"], 15) << layers;
      EXPECT_LT(layers["input_snr_db"], 60) << layers;
    }
  }
  const std::vector<std::string> ops{"embedding", "norm",    "rope",        "attention",
                                     "silu_mul",  "round",   "gather_rows", "argmax",
                                     "topk",      "logprob", "sample",      "absmax"};
  ASSERT_EQ(result["operations"].size(), ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    const json& op = result["operations"][i];
    EXPECT_EQ(op["op"], ops[i]);
    EXPECT_THAT(op["kernel"].get<std::string>(), HasSubstr("cpu."));
    EXPECT_GT(op["values"], 0) << op;
    EXPECT_LE(op["worst"], 1) << op;
    EXPECT_TRUE(op["failure"].is_null()) << op;
  }
  EXPECT_EQ(result["operations"][1]["problem"], "width 64");
  ASSERT_FALSE(result["inputs"].empty());
  EXPECT_EQ(result["inputs"][0]["output"], "f8e4m3/row/f32/dynamic");
}

TEST_F(Verify, TheSeedChangesTheTokensAndNothingElse) {
  write_small_model(model());
  const std::string one = runs({"verify", model(), "--json"}, 0).out;
  EXPECT_EQ(runs({"verify", model(), "--json", "-t", "1"}, 0).out, one);
  EXPECT_NE(runs({"verify", model(), "--json", "--seed", "2"}, 0).out, one);
}

TEST_F(Verify, AllRunsEveryLayerAndTheSampleThreeOfAKind) {
  TinyModel tiny = small_model();
  tiny.layers = 5;
  tiny_model(tiny).write(model());
  const auto checked = [&](const Words& words) {
    return json::parse(runs(words, 0).out)["linear"][0]["checked"].get<int>();
  };
  EXPECT_EQ(checked({"verify", model(), "--json"}), 3);
  EXPECT_EQ(checked({"verify", model(), "--json", "--all"}), 5);
}

TEST_F(Verify, APlantedKernelIsCaughtQuarantinedAndRoutedAround) {
  write_small_model(model());
  const Words ask{"run", model(), "-p", "bread and", "-n", "12", "--dtype", "float32", "--json"};
  const auto tokens = [](const Ran& ran) { return json::parse(ran.out)["tokens"]; };
  const json right = tokens(runs(ask, 0));
  EXPECT_NE(tokens(planted(ask, 0)), right) << "the planted kernel does no harm";

  // Caught, with its layer class.
  const Ran caught = planted({"verify", model(), "--quarantine", list()}, 1);
  EXPECT_THAT(caught.out, AllOf(HasSubstr("WRONG: " + std::string(kPlanted)),
                                HasSubstr("mlp.down_proj"), HasSubstr("times its bound")));
  EXPECT_THAT(caught.err, AllOf(HasSubstr("gave wrong values"), HasSubstr(list())));

  // Written down: device, kernel, scheme, problem, reason, version.
  const json file = read_json(list());
  ASSERT_EQ(file["entries"].size(), 4U) << file;  // four shapes
  const json& entry = file["entries"][0];
  EXPECT_EQ(entry["device"], "cpu");
  EXPECT_FALSE(entry["device_name"].get<std::string>().empty());
  EXPECT_EQ(entry["kernel"], kPlanted);
  EXPECT_EQ(entry["scheme"], "w8a8");
  EXPECT_EQ(entry["problem"]["n"], 64);
  EXPECT_EQ(entry["problem"]["k"], 64);
  EXPECT_EQ(entry["problem"]["weight"], "f8e4m3/row/bf16/static");
  EXPECT_EQ(entry["problem"]["input"], "f8e4m3/row/f32/dynamic");
  EXPECT_THAT(entry["reason"].get<std::string>(), HasSubstr("times its bound"));
  EXPECT_EQ(entry["octet"], OCTET_VERSION);

  // Refused with its reason, and another one chosen.
  const Ran plan = planted({"plan", model(), "--quarantine", list()}, 0);
  EXPECT_THAT(plan.out, AllOf(HasSubstr("- quarantined: error"), HasSubstr(list()),
                              Not(HasSubstr("* w8a8  " + std::string(kPlanted)))));
  const json planned =
      json::parse(planted({"plan", model(), "--json", "--quarantine", list()}, 0).out);
  for (const json& layers : planned["linear"]) EXPECT_NE(layers["kernel"], kPlanted) << layers;

  // Right again, in every command.
  Words without = ask;
  without.insert(without.end(), {"--quarantine", list()});
  EXPECT_EQ(tokens(planted(without, 0)), right);
  planted({"verify", model(), "--quarantine", list()}, 0);
  EXPECT_EQ(read_json(list()), file) << "a run without failures changes nothing";
}

TEST_F(Verify, APlantedAttentionKernelIsCaughtQuarantinedAndRoutedAround) {
  write_small_model(model());
  const auto run_planted = [&](const Words& words, int status) {
    return runs(words, status, planted_attention_program());
  };
  const Words ask{"run", model(), "-p", "bread and", "-n", "12", "--json"};
  const auto tokens = [](const Ran& ran) { return json::parse(ran.out)["tokens"]; };
  const json right = tokens(runs(ask, 0));
  EXPECT_NE(tokens(run_planted(ask, 0)), right) << "the planted kernel does no harm";

  const Ran caught = run_planted({"verify", model(), "--quarantine", list()}, 1);
  EXPECT_THAT(caught.out, AllOf(HasSubstr("WRONG: cpu.attention.planted heads 4/2x16, KV bf16: "),
                                HasSubstr("times its bound")));
  EXPECT_THAT(caught.err, HasSubstr("1 pair of kernel and problem gave wrong values"));
  const json file = read_json(list());
  ASSERT_EQ(file["entries"].size(), 1U) << file;
  const json& entry = file["entries"][0];
  EXPECT_EQ(entry["kernel"], "cpu.attention.planted");
  EXPECT_FALSE(entry.contains("scheme"));
  EXPECT_EQ(entry["problem"], (json{{"input", "heads 4/2x16, KV bf16"}}));
  EXPECT_THAT(entry["reason"].get<std::string>(), HasSubstr("times its bound"));

  EXPECT_THAT(run_planted({"plan", model(), "--quarantine", list()}, 0).out,
              AllOf(HasSubstr("quarantined: error"), HasSubstr("cpu.attention.planted")));
  const auto attention = [&](const Words& more) {
    Words words{"plan", model(), "--json", "--quarantine", list()};
    words.insert(words.end(), more.begin(), more.end());
    const json plan = json::parse(run_planted(words, 0).out);
    for (const json& op : plan["operations"]) {
      if (op["op"] == "attention") return op["kernel"].get<std::string>();
    }
    return std::string();
  };
  EXPECT_THAT(attention({}), AllOf(HasSubstr("cpu.attention."), Not(HasSubstr("planted"))));
  // The cache of --dtype float32 is another problem.
  EXPECT_EQ(attention({"--dtype", "float32"}), "cpu.attention.planted");

  Words without = ask;
  without.insert(without.end(), {"--quarantine", list()});
  EXPECT_EQ(tokens(run_planted(without, 0)), right);
  run_planted({"verify", model(), "--quarantine", list()}, 0);
  EXPECT_EQ(read_json(list()), file) << "a run without failures changes nothing";
}

TEST_F(Verify, AQuarantineIsForTheProblemsItNames) {
  write_small_model(model());
  planted({"verify", model(), "--quarantine", list()}, 1);
  json file = read_json(list());
  json kept = json::array();
  for (const json& entry : file["entries"]) {
    if (entry["problem"]["k"] == 96) kept.push_back(entry);
  }
  ASSERT_EQ(kept.size(), 1U);
  file["entries"] = kept;
  write_bytes(list(), file.dump());
  const json plan =
      json::parse(planted({"plan", model(), "--json", "--quarantine", list()}, 0).out);
  for (const json& layers : plan["linear"]) {
    if (layers["scheme"] != "w8a8") continue;
    EXPECT_EQ(layers["kernel"] == kPlanted, layers["k"] != 96) << layers;
  }
  // What is wrong still is added, and what was there stays.
  planted({"verify", model(), "--quarantine", list()}, 1);
  EXPECT_EQ(read_json(list())["entries"].size(), 4U);
}

TEST_F(Verify, WithoutAFileTheHintNamesTheFlag) {
  write_small_model(model());
  const Ran ran = planted({"verify", model()}, 1);
  EXPECT_THAT(ran.err, HasSubstr("--quarantine FILE"));
}

TEST_F(Verify, AForcedKernelInQuarantineIsRefusedWithItsReason) {
  write_small_model(model());
  planted({"verify", model(), "--quarantine", list()}, 1);
  const Words words{"run", model(),    "-p",     "bread",        "-n",
                    "2",   "--kernel", kPlanted, "--quarantine", list()};
  const Ran ran = planted(words, 3);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("quarantined: error"), HasSubstr("--quarantine")));
}

TEST_F(Verify, QuarantineFilesThatCannotBeUsedAreExit2) {
  write_small_model(model());
  EXPECT_THAT(runs({"plan", model(), "--quarantine", list()}, 2).err, HasSubstr("bad.json"));
  write_bytes(list(), "{}");
  for (const char* command : {"plan", "verify"}) {
    const Ran ran = runs({command, model(), "--quarantine", list()}, 2);
    EXPECT_THAT(ran.err, AllOf(HasSubstr("bad.json"), HasSubstr("octet_quarantine")));
  }
  write_bytes(list(), std::string(100, '['));
  runs({"plan", model(), "--quarantine", list()}, 2);
}

TEST_F(Verify, AQuarantineThatCannotBeWrittenIsAnErrorAndLeavesNothing) {
  write_small_model(model());
  const std::string nowhere = (folder_.path() / "none" / "bad.json").string();
  const Ran ran = planted({"verify", model(), "--quarantine", nowhere}, 2);
  EXPECT_THAT(ran.err, HasSubstr("none"));
  EXPECT_THAT(ran.out, HasSubstr("WRONG"));  // the result is not lost
}

// A model with one code of q_proj of layer 1 replaced.
void plant_code(const std::string& dir, uint8_t code) {
  TinyCheckpoint checkpoint = endless_checkpoint(small_model());
  const std::string name = "model.layers.1.self_attn.q_proj.weight";
  std::vector<std::byte> codes(64 * 64, std::byte{0x38});
  codes[70] = std::byte{code};
  checkpoint.remove(name);
  checkpoint.add(name, DType::F8E4M3, Shape{64, 64}, codes);
  checkpoint.write(dir);
}

TEST_F(Verify, ANaNCodeIsTheTensorsFaultAndNoKernels) {
  for (const uint8_t code : {0x7F, 0xFF}) {
    plant_code(model(), code);
    const Ran ran = runs({"verify", model(), "--quarantine", list()}, 1);
    EXPECT_THAT(ran.out, AllOf(HasSubstr("DAMAGED: tensor "
                                         "\"model.layers.1.self_attn.q_proj.weight\""),
                               HasSubstr("[1, 6]"), Not(HasSubstr("WRONG"))));
    EXPECT_THAT(ran.err, HasSubstr("1 tensor holds"));
    EXPECT_FALSE(fs::exists(list()));
    const json result = json::parse(runs({"verify", model(), "--json"}, 1).out);
    EXPECT_EQ(result["damaged"][0]["values"], 1);
  }
}

TEST_F(Verify, ModelsAndPlansThatCannotRunKeepTheirExitStatus) {
  runs({"verify", model()}, 2);
  write_small_model(model());
  runs({"verify", model(), "-tp", "2"}, 3);
  runs({"verify", model(), "--max-model-len", "1g"}, 3);
  runs({"verify"}, 2);
}

TEST_F(Verify, ATerminalSeesProgressAndCtrlCIsExit130) {
  TinyModel large = small_model();
  large.vocab = 200'000;
  large.layers = 1;
  tiny_model(large).write(model());
  Terminal terminal({"verify", model(), "--all", "-t", "1"});
  terminal.expect("verifying");
  terminal.type(Terminal::kCtrlC);
  EXPECT_EQ(terminal.wait(), 130);
}

}  // namespace
}  // namespace octet
