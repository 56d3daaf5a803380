// Rules of inspect() on a config, an index or a text that has that one fault.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "evaluate/inspect_test.h"

namespace octet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace fs = std::filesystem;

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

TEST_F(InspectTest, TheJsonNamesEveryUnusedTensorTheTextAFew) {
  TinyCheckpoint checkpoint = tiny_model(small());
  for (int i = 0; i < 12; ++i)
    checkpoint.add_normal(fmt::format("extra.{}", i), DType::BF16, Shape{4}, 1);
  write(checkpoint);
  const Inspection result = inspected();
  EXPECT_THAT(explain(result), AllOf(HasSubstr("12 not used"), HasSubstr(" and 4 more")));
  const auto json = nlohmann::json::parse(to_json(result));
  EXPECT_EQ(json["findings"][0]["rule"], "tensor-unused");
  EXPECT_EQ(json["findings"][0]["names"].size(), 12U);
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

TEST_F(InspectTest, AShardThatCannotBeReadDoesNotHideTheOthersFaults) {
  write(with_scales(scales(0)), 2);
  for (const char* name :
       {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}) {
    std::ifstream in(file(name), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    if (bytes.find("\"" + kQScale + "\"") != std::string::npos) continue;
    fs::remove(file(name));
    fs::create_symlink(name, file(name));  // a link to itself
    EXPECT_THAT(faults(),
                ElementsAre(std::string("shard-broken ") + name, "scale-zero " + kQScale));
  }
}

TEST_F(InspectTest, EndIdsThatAreNotTheTokenizersEnd) {
  TinyCheckpoint checkpoint = tiny_model(small());
  const auto with_ends = [&](const char* tokenizer, const nlohmann::json& config,
                             const char* generation) {
    checkpoint.config()["eos_token_id"] = config;
    write(checkpoint);
    write_text(file("tokenizer_config.json"), tokenizer);
    write_text(file("generation_config.json"), generation);
    return faults();
  };
  constexpr const char* kEnd = R"({"eos_token": "<|im_end|>"})";  // id 2
  EXPECT_THAT(with_ends(kEnd, 2, "{}"), IsEmpty());
  EXPECT_THAT(with_ends(kEnd, {1, 2}, R"({"eos_token_id": 2})"), IsEmpty());
  EXPECT_THAT(with_ends(kEnd, 0, R"({"eos_token_id": [2, 0]})"), IsEmpty());
  EXPECT_THAT(with_ends("{}", 0, "{}"), IsEmpty());
  EXPECT_THAT(with_ends(kEnd, 0, "{}"), ElementsAre("eos-disagrees config.json /eos_token_id"));
  EXPECT_THAT(with_ends(kEnd, 0, R"({"eos_token_id": 2})"),
              ElementsAre("eos-disagrees config.json /eos_token_id"));
  EXPECT_THAT(with_ends(kEnd, 2, R"({"eos_token_id": 1})"),
              ElementsAre("eos-disagrees generation_config.json /eos_token_id"));
  EXPECT_THAT(only("eos-disagrees").expected, HasSubstr("2, \"<|im_end|>\""));
}

TEST_F(InspectTest, AddedTokensThatTheTokenizerDoesNotHave) {
  write(tiny_model(small()));
  write_text(file("tokenizer_config.json"), R"({"added_tokens_decoder": {
    "1": {"content": "<|im_start|>"}, "2": {"content": "<|zz|>"},
    "1000000": {"content": "<|yy|>"}, "x": {"content": "a"}, "3": 7}})");
  EXPECT_THAT(faults(),
              ElementsAre("added-token tokenizer_config.json /added_tokens_decoder/1000000",
                          "added-token tokenizer_config.json /added_tokens_decoder/2"));
}

TEST_F(InspectTest, ATemplateThatMakesNoPrompt) {
  write(tiny_model(small()));
  write_text(file("chat_template.jinja"), "{{ raise_exception('no plain turns') }}");
  EXPECT_THAT(faults(), ElementsAre("template-fails chat template \"default\""));
  EXPECT_THAT(only("template-fails").got, HasSubstr("no plain turns"));
  write_text(file("chat_template.jinja"), "{% if false %}x{% endif %}");
  EXPECT_THAT(faults(), ElementsAre("template-fails chat template \"default\""));
}

TEST_F(InspectTest, KeysThatAreThereTwice) {
  write(tiny_model(small()));
  write_text(
      file("generation_config.json"),
      R"({"top_k": 1, "a": {"b": {"c": 1, "c": 2}}, "d": [{"c": 1}, {"c": 2}], "top_k": 2})");
  EXPECT_THAT(faults(), ElementsAre("duplicate-key generation_config.json /a/b/c",
                                    "duplicate-key generation_config.json /top_k"));
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
  EXPECT_THAT(faults(), ElementsAre("unsupported config.json", "scale-zero " + kQScale));
  EXPECT_THAT(only("unsupported").got, HasSubstr("SomethingNew"));
}

TEST_F(InspectTest, WhatNoPlanCanRunIsAFinding) {
  using Json = nlohmann::json;
  struct Case {
    const char* key;
    Json value;
    const char* fault;
  };
  const Case cases[] = {
      {"hidden_act", "gelu", "unsupported config.json"},
      {"hidden_act", 7, "config config.json"},
      {"rope_scaling", {{"rope_type", "spiral"}, {"factor", 2}}, "unsupported config.json"},
      {"rope_scaling", {{"full_attention", {{"rope_type", "default"}}}}, "unsupported config.json"},
      {"rope_scaling", 3, "config config.json"},
      {"text_config", {{"model_type", "something_new"}}, "unsupported config.json"},
      {"num_experts", 8, "unsupported model.layers.0.mlp.experts"},
  };
  for (const Case& c : cases) {
    TinyCheckpoint checkpoint = tiny_model(small());
    checkpoint.config().erase("rope_parameters");
    checkpoint.config()[c.key] = c.value;
    write(checkpoint);
    EXPECT_THAT(faults(), ::testing::Contains(c.fault)) << c.key << c.value;
    EXPECT_FALSE(inspected().clean());
  }
}

TEST_F(InspectTest, AnIndexThatNamesAnAbsentTensorDoesNotHideTheOthers) {
  TinyCheckpoint checkpoint = with_scales(scales(0));
  write(checkpoint, 2);
  const fs::path index = file("model.safetensors.index.json");
  std::ifstream in(index);
  nlohmann::json json = nlohmann::json::parse(in);
  json["weight_map"]["model.layers.1.mlp.gate_proj.weight"] = "model-00001-of-00002.safetensors";
  checkpoint.remove("model.layers.1.mlp.gate_proj.weight");
  checkpoint.remove("model.norm.weight");
  checkpoint.add_normal("model.norm.weight", DType::BF16, Shape{63}, 1);
  write(checkpoint, 2);
  write_text(index, json.dump());
  EXPECT_THAT(faults(),
              ElementsAre("checkpoint model", "tensor-absent model.layers.1.mlp.gate_proj.weight",
                          "tensor-shape model.norm.weight",
                          "scale-orphan model.layers.1.mlp.gate_proj.weight_scale",
                          "scale-zero " + kQScale));
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
