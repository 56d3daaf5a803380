// Every rule of inspect() on a tiny checkpoint with that one fault.
#include "evaluate/inspect.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "testing/tiny_checkpoint.h"

namespace octet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace fs = std::filesystem;

constexpr const char* kQ = "model.layers.1.self_attn.q_proj";
const std::string kQWeight = std::string(kQ) + ".weight";
const std::string kQScale = std::string(kQ) + ".weight_scale";

TinyModel small(LayerQuant quant = tiny_fp8_dynamic()) {
  TinyModel model;
  model.hidden = 64;
  model.intermediate = 96;
  model.heads = 4;
  model.head_dim = 16;
  model.vocab = 400;
  model.quant = quant;
  return model;
}

class InspectTest : public ::testing::Test {
 protected:
  fs::path model() const { return folder_.path() / "model"; }
  fs::path file(const char* name) const { return model() / name; }

  static void write_text(const fs::path& path, std::string_view text) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << text;
    ASSERT_TRUE(out.flush());
  }

  void write(const TinyCheckpoint& checkpoint, int shards = 1) const {
    checkpoint.write(model(), shards);
    fs::copy_file("testing/data/tokenizers/smollm2/tokenizer.json", file("tokenizer.json"),
                  fs::copy_options::overwrite_existing);
    write_text(file("tokenizer_config.json"), R"({"eos_token": "<|im_end|>"})");
    write_text(file("chat_template.jinja"), "{{ '<|im_start|>' + messages[0]['content'] }}");
  }

  Inspection inspected() const {
    ThreadPool pool(2);
    return inspect(model(), pool, nullptr);
  }

  // "rule subject" of every error and warning.
  static std::vector<std::string> faults(const Inspection& inspection) {
    std::vector<std::string> out;
    for (const Finding& f : inspection.findings) {
      if (f.rule->severity != Severity::Note)
        out.push_back(fmt::format("{} {}", f.rule->id, f.subject));
    }
    return out;
  }
  std::vector<std::string> faults() const { return faults(inspected()); }

  // The one finding of `rule`.
  Finding only(std::string_view rule) const {
    const Inspection inspection = inspected();
    std::vector<Finding> found;
    for (const Finding& f : inspection.findings) {
      if (f.rule->id == rule) found.push_back(f);
    }
    EXPECT_EQ(found.size(), 1U) << rule << "\n" << explain(inspection);
    return found.empty() ? Finding{} : found.front();
  }

  // Replaces the scales of q_proj of layer 1.
  static TinyCheckpoint with_scales(std::vector<float> values, DType dtype = DType::F32) {
    TinyCheckpoint checkpoint = tiny_model(small());
    checkpoint.remove(kQScale);
    checkpoint.add_values(kQScale, dtype, Shape{static_cast<int64_t>(values.size()), 1}, values);
    return checkpoint;
  }
  static std::vector<float> scales(float one, size_t at = 3) {
    std::vector<float> values(64, 0.001F);
    values[at] = one;
    return values;
  }

  TinyFolder folder_;
};

TEST_F(InspectTest, SoundCheckpointsOfEveryFormHaveNoFindings) {
  for (const LayerQuant& quant : {tiny_plain(), tiny_fp8_dynamic(), tiny_fp8_static(),
                                  tiny_fp8_block(), tiny_mxfp8(), tiny_fp8_weight_only()}) {
    fs::remove_all(model());
    write(tiny_model(small(quant)));
    const Inspection inspection = inspected();
    EXPECT_TRUE(inspection.clean()) << explain(inspection);
    EXPECT_THAT(inspection.findings, IsEmpty()) << explain(inspection);
    EXPECT_GT(inspection.tensors, 0);
  }
}

TEST_F(InspectTest, AMissingScale) {
  TinyCheckpoint checkpoint = tiny_model(small());
  checkpoint.remove(kQScale);
  write(checkpoint);
  EXPECT_THAT(faults(), ElementsAre("scale-missing " + kQWeight));
}

TEST_F(InspectTest, AScaleOfAnotherSpellingIsNamed) {
  TinyCheckpoint checkpoint = tiny_model(small());
  checkpoint.rename(kQScale, std::string(kQ) + ".scale_weight");
  write(checkpoint);
  EXPECT_THAT(only("scale-missing").got, HasSubstr("scale_weight"));
}

TEST_F(InspectTest, AScaleWithoutAWeightOrBesideAPlainOne) {
  TinyCheckpoint checkpoint = tiny_model(small(tiny_plain()));
  checkpoint.add_values(kQScale, DType::F32, Shape{64, 1}, std::vector<float>(64, 0.01F));
  write(checkpoint);
  EXPECT_THAT(only("scale-orphan").got, HasSubstr("bf16"));
}

TEST_F(InspectTest, ZeroNegativeAndNotFiniteScalesAreCountedAndPlaced) {
  write(with_scales(scales(0)));
  EXPECT_THAT(faults(), ElementsAre("scale-zero " + kQScale));
  EXPECT_THAT(only("scale-zero").got, AllOf(HasSubstr("1 of 64"), HasSubstr("[3, 0]")));
  write(with_scales(scales(-0.5F)));
  EXPECT_THAT(only("scale-negative").got, HasSubstr("-0.5"));
  write(with_scales(scales(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_THAT(only("scale-not-finite").got, HasSubstr("nan"));
  write(with_scales(scales(std::numeric_limits<float>::infinity())));
  EXPECT_THAT(only("scale-not-finite").got, HasSubstr("inf"));
}

TEST_F(InspectTest, SubnormalScalesAreJudgedByTheirOwnDtype) {
  write(with_scales(scales(0x1p-130F)));
  EXPECT_THAT(faults(), ElementsAre("scale-denormal " + kQScale));
  write(with_scales(scales(0x1p-16F), DType::F16));
  EXPECT_THAT(faults(), ElementsAre("scale-denormal " + kQScale));
  write(with_scales(scales(0x1p-16F), DType::BF16));
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(InspectTest, ReciprocalsOfScalesLookInverse) {
  const TinyCheckpoint sound = tiny_model(small());
  write(with_scales(std::vector<float>(64, 1 / 0.001F)));
  const Finding finding = only("scale-inverse");
  EXPECT_EQ(finding.subject, kQScale);
  EXPECT_EQ(finding.rule->severity, Severity::Warning);
  EXPECT_THAT(finding.got, HasSubstr("1e+03"));
}

TEST_F(InspectTest, LargeWeightsAloneDoNotLookInverse) {
  write(with_scales(std::vector<float>(64, 1.0F)));  // weights up to 448
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(InspectTest, NaNScalesOfMicroscaling) {
  TinyCheckpoint checkpoint = tiny_model(small(tiny_mxfp8()));
  std::vector<std::byte> codes(64 * 2, std::byte{120});
  codes[5] = std::byte{255};
  checkpoint.remove(kQScale);
  checkpoint.add(kQScale, DType::U8, Shape{64, 2}, codes);
  write(checkpoint);
  EXPECT_THAT(only("scale-not-finite").got, HasSubstr("[2, 1]"));
}

TEST_F(InspectTest, ScalesOfAnotherShapeThanTheStrategy) {
  TinyCheckpoint checkpoint = tiny_model(small(tiny_fp8_block(32, 32)));
  checkpoint.remove(kQScale);
  checkpoint.add_values(kQScale, DType::BF16, Shape{3, 2}, std::vector<float>(6, 0.001F));
  write(checkpoint);
  const Finding finding = only("scale-shape");
  EXPECT_EQ(finding.subject, kQScale);
  EXPECT_THAT(finding.expected, AllOf(HasSubstr("[2, 2]"), HasSubstr("block32x32")));
  EXPECT_THAT(finding.got, HasSubstr("[3, 2]"));
}

// Codes of q_proj of layer 1 with one of them replaced, or all of them small.
TinyCheckpoint with_codes(DType dtype, const std::function<std::byte(size_t)>& code) {
  TinyCheckpoint checkpoint = tiny_model(small());
  std::vector<std::byte> codes(64 * 64);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = code(i);
  checkpoint.remove(kQWeight);
  checkpoint.add(kQWeight, dtype, Shape{64, 64}, codes);
  return checkpoint;
}

TEST_F(InspectTest, NaNAndInfiniteCodesAreNamedWithTheirPlace) {
  struct Case {
    DType dtype;
    uint8_t code;
  };
  for (const Case& c : {Case{DType::F8E4M3, 0x7F}, Case{DType::F8E4M3, 0xFF},
                        Case{DType::F8E5M2, 0x7C}, Case{DType::F8E5M2, 0xFE}}) {
    const std::byte largest{c.dtype == DType::F8E4M3 ? uint8_t{0x7E} : uint8_t{0x7B}};
    write(with_codes(c.dtype, [&](size_t i) { return i == 70 ? std::byte{c.code} : largest; }));
    const Finding finding = only("weight-not-finite");
    EXPECT_EQ(finding.subject, kQWeight);
    EXPECT_THAT(finding.got, AllOf(HasSubstr("1 of 4096"), HasSubstr("[1, 6]"),
                                   HasSubstr(fmt::format("0x{:02X}", c.code))));
  }
}

TEST_F(InspectTest, NaNInAPlainTensor) {
  TinyCheckpoint checkpoint = tiny_model(small());
  std::vector<float> values(64, 1);
  values[9] = std::numeric_limits<float>::quiet_NaN();
  checkpoint.remove("model.norm.weight");
  checkpoint.add_values("model.norm.weight", DType::BF16, Shape{64}, values);
  write(checkpoint);
  EXPECT_THAT(faults(), ElementsAre("weight-not-finite model.norm.weight"));
  EXPECT_THAT(only("weight-not-finite").got, HasSubstr("[9]"));
}

TEST_F(InspectTest, CodesThatUseASixteenthOfTheRange) {
  const auto all = [](uint8_t code) { return [code](size_t) { return std::byte{code}; }; };
  write(with_codes(DType::F8E4M3, all(0x5E)));  // 28 = 448 / 16
  EXPECT_THAT(faults(), ElementsAre("range-unused " + kQWeight));
  EXPECT_THAT(only("range-unused").got, HasSubstr("28"));
  write(with_codes(DType::F8E4M3, all(0x5F)));  // 30
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(InspectTest, TargetsAndIgnoreEntriesThatMatchNothing) {
  TinyCheckpoint checkpoint = tiny_model(small());
  auto& config = checkpoint.config()["quantization_config"];
  config["ignore"] = {"lm_head", "re:.*vision.*", "model.layers.7.mlp.up_proj",
                      "re:model\\.layers\\.1\\..*norm", "model.layers.0.self_attn.q_proj.linear"};
  for (auto& [name, group] : config["config_groups"].items())
    group["targets"].push_back("re:.*experts.*");
  write(checkpoint);
  std::vector<std::string> got;
  for (const Finding& f : inspected().findings) {
    if (f.rule->id == "pattern-unused") got.push_back(f.got);
  }
  EXPECT_THAT(got, ElementsAre(HasSubstr("re:.*experts.*"), HasSubstr("re:.*vision.*"),
                               HasSubstr("model.layers.7.mlp.up_proj")));
}

TEST_F(InspectTest, ExclusionsOfTheFp8DialectThatMatchNothing) {
  TinyModel tiny = small(tiny_fp8_block());
  tiny.dialect = TinyDialect::Fp8;
  TinyCheckpoint checkpoint = tiny_model(tiny);
  checkpoint.config()["quantization_config"]["modules_to_not_convert"] = {
      "lm_head", "language_model.model.layers.0.input_layernorm", "input_layernorm", "visual",
      "layers.1.mlp.gate"};
  write(checkpoint);
  EXPECT_THAT(faults(),
              ElementsAre("pattern-unused quantization_config.modules_to_not_convert[3]",
                          "pattern-unused quantization_config.modules_to_not_convert[4]"));
}

TEST_F(InspectTest, ConfigAndFilesThatDisagree) {
  TinyCheckpoint checkpoint = tiny_model(small());
  checkpoint.config()["quantization_config"]["ignore"] = {"lm_head", kQ};
  write(checkpoint);
  const Finding finding = only("quant-disagrees");
  EXPECT_EQ(finding.subject, kQWeight);
  EXPECT_THAT(finding.got, HasSubstr("f8e4m3 with scales"));
}

TEST_F(InspectTest, UnusedAbsentAndMisshapenTensorsAreFoundTogether) {
  TinyCheckpoint checkpoint = tiny_model(small());
  checkpoint.add_normal("model.layers.0.surprise", DType::BF16, Shape{4}, 1);
  checkpoint.remove("model.layers.0.input_layernorm.weight");
  checkpoint.remove("model.layers.1.mlp.up_proj.weight");
  checkpoint.remove("model.norm.weight");
  checkpoint.add_normal("model.norm.weight", DType::BF16, Shape{63}, 1);
  write(checkpoint);
  EXPECT_THAT(faults(), ElementsAre("tensor-absent model.layers.0.input_layernorm.weight",
                                    "tensor-absent model.layers.1.mlp.up_proj.weight",
                                    "tensor-shape model.norm.weight", "tensor-unused files",
                                    "scale-orphan model.layers.1.mlp.up_proj.weight_scale"));
  EXPECT_THAT(only("tensor-unused").got,
              AllOf(HasSubstr("model.layers.0.surprise"), Not(HasSubstr("up_proj"))));
}

TEST_F(InspectTest, AbsentAndBrokenShardsDoNotHideTheOthersFaults) {
  TinyCheckpoint checkpoint = with_scales(scales(0));
  write(checkpoint, 4);
  const auto shard = [&](int i) {
    return file(fmt::format("model-{:05}-of-00004.safetensors", i).c_str());
  };
  // The shard that holds the scale must stay.
  std::vector<int> others;
  for (int i = 1; i <= 4; ++i) {
    std::ifstream in(shard(i), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    if (bytes.find("\"" + kQScale + "\"") == std::string::npos) others.push_back(i);
  }
  ASSERT_EQ(others.size(), 3U);
  fs::remove(shard(others[0]));
  fs::resize_file(shard(others[1]), fs::file_size(shard(others[1])) - 8);
  const Inspection inspection = inspected();
  EXPECT_THAT(
      faults(inspection),
      ElementsAre("shard-absent " + shard(others[0]).filename().string(),
                  "shard-broken " + shard(others[1]).filename().string(), "scale-zero " + kQScale))
      << explain(inspection);
  fs::remove(file("model.safetensors.index.json"));  // the names tell as well
  EXPECT_THAT(faults(),
              ::testing::Contains("shard-absent " + shard(others[0]).filename().string()));
}

TEST_F(InspectTest, AQuantisationConfigThatIsNotReadDoesNotHideTheRest) {
  TinyCheckpoint checkpoint = with_scales(scales(0));
  checkpoint.config()["quantization_config"]["config_groups"]["group_0"]["weights"]["strategy"] =
      "tokens";
  write(checkpoint);
  const Inspection inspection = inspected();
  EXPECT_THAT(faults(inspection),
              ElementsAre("quantization-config config.json", "scale-zero " + kQScale))
      << explain(inspection);
}

TEST_F(InspectTest, AConfigOfNoModelAndAnUnknownModel) {
  TinyCheckpoint checkpoint = with_scales(scales(0));
  checkpoint.config()["hidden_size"] = -1;
  write(checkpoint);
  EXPECT_THAT(faults(), ElementsAre("config config.json", "scale-zero " + kQScale));
  checkpoint = with_scales(scales(0));
  checkpoint.config()["architectures"] = {"SomethingNewForCausalLM"};
  checkpoint.config()["model_type"] = "something_new";
  write(checkpoint);
  EXPECT_THAT(faults(), ElementsAre("scale-zero " + kQScale));
  EXPECT_THAT(only("left-out").got, HasSubstr("SomethingNew"));
}

TEST_F(InspectTest, ATemplateWhoseTokensTheTokenizerSplits) {
  write(tiny_model(small()));
  write_text(
      file("chat_template.jinja"),
      "{{ '<|im_start|>' + '<|start_header_id|>' + '<' + '|' + messages[0]['role'] + '|>' }}");
  const Finding finding = only("template-token");
  EXPECT_THAT(finding.expected, HasSubstr("<|start_header_id|>"));
  EXPECT_THAT(faults(), ElementsAre("template-token chat template \"default\""));
}

TEST_F(InspectTest, ATemplateAndATokenizerThatDoNotParse) {
  write(tiny_model(small()));
  write_text(file("chat_template.jinja"), "{% if %}");
  EXPECT_THAT(faults(), ElementsAre("template chat template \"default\""));
  write_text(file("tokenizer.json"), "{");
  EXPECT_THAT(faults(),
              ElementsAre("tokenizer tokenizer.json", "template chat template \"default\""));
}

TEST_F(InspectTest, SpecialTokensAndIdsThatTheTokenizerDoesNotHave) {
  TinyCheckpoint checkpoint = tiny_model(small());
  checkpoint.config()["eos_token_id"] = {2, 399, 400};
  write(checkpoint);
  write_text(file("tokenizer_config.json"), R"({"eos_token": "<|eot_id|>"})");
  write_text(file("generation_config.json"), R"({"eos_token_id": -1})");
  EXPECT_THAT(faults(), ElementsAre("special-token tokenizer_config.json /eos_token",
                                    "id-outside-vocabulary config.json /eos_token_id",
                                    "id-outside-vocabulary generation_config.json /eos_token_id",
                                    "id-not-a-token config.json /eos_token_id",
                                    "generation-config generation_config.json"));
}

TEST_F(InspectTest, ATokenizerWithMoreTokensThanTheModel) {
  TinyModel tiny = small();
  tiny.vocab = 300;
  write(tiny_model(tiny));
  EXPECT_THAT(faults(), ElementsAre("id-outside-vocabulary tokenizer.json"));
}

TEST_F(InspectTest, WhatIsNoModelIsAnErrorAndNoFinding) {
  ThreadPool pool(1);
  EXPECT_THROW(inspect(folder_.path() / "absent", pool, nullptr), Error);
  fs::create_directories(model());
  EXPECT_THROW(inspected(), Error);
  write(tiny_model(small()));
  write_text(file("config.json"), "[]");
  EXPECT_THROW(inspected(), Error);
}

TEST_F(InspectTest, EqualFindingsOfManyLayersAreOneInTheTextAndEachInTheJson) {
  TinyCheckpoint checkpoint = tiny_model(small());
  for (int layer = 0; layer < 2; ++layer) {
    const std::string scale = fmt::format("model.layers.{}.mlp.up_proj.weight_scale", layer);
    std::vector<float> values(96, 0.001F);
    values[3] = 0;
    checkpoint.remove(scale);
    checkpoint.add_values(scale, DType::F32, Shape{96, 1}, values);
  }
  write(checkpoint);
  const Inspection inspection = inspected();
  EXPECT_THAT(explain(inspection),
              HasSubstr("error scale-zero: 2 layers: model.layers.*.mlp.up_proj.weight_scale\n"));
  const auto json = nlohmann::json::parse(to_json(inspection));
  EXPECT_EQ(json["findings"].size(), 2U);
  EXPECT_EQ(json["findings"][1]["subject"], "model.layers.1.mlp.up_proj.weight_scale");
  EXPECT_FALSE(json["clean"].get<bool>());
}

TEST_F(InspectTest, ProgressEndsWithEveryByteAndMayEndTheInspection) {
  write(tiny_model(small()));
  ThreadPool pool(1);
  uint64_t last = 0, all = 1;
  inspect(model(), pool, [&](uint64_t done, uint64_t total) {
    EXPECT_GE(done, last);
    last = done;
    all = total;
  });
  EXPECT_EQ(last, all);
  const auto stop = [](uint64_t, uint64_t) { throw_error(Code::Interrupted, "stop"); };
  EXPECT_THROW(inspect(model(), pool, stop), Error);
}

TEST(InspectRules, HaveUniqueNamesAndTheTableOfThePageHasThemAll) {
  std::ifstream file("docs/CHECKS.md", std::ios::binary);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::set<std::string_view> ids;
  for (const InspectRule& rule : inspect_rules()) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
    EXPECT_THAT(page, HasSubstr(fmt::format("| `{}` | {} | {} |\n", rule.id, name(rule.severity),
                                            rule.meaning)));
  }
}

}  // namespace
}  // namespace octet
