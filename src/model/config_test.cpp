#include "model/config.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "testing/tiny_checkpoint.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

json sound() {
  return tiny_model({}).config();
}

// The message of the refusal, which must have this code.
std::string refusal(const json& config, Code code) {
  try {
    read_config(config);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.message();
    return error.message() + " " + error.hint();
  }
  ADD_FAILURE() << "taken: " << config.dump();
  return {};
}

TEST(ReadConfig, ReadsTheSizes) {
  const ModelConfig config = read_config(sound());
  EXPECT_EQ(config.architecture, "LlamaForCausalLM");
  EXPECT_EQ(config.dims.layers, 2);
  EXPECT_EQ(config.dims.hidden, 256);
  EXPECT_EQ(config.dims.kv_heads, 2);
  EXPECT_EQ(config.dims.head_dim, 64);
  EXPECT_EQ(config.dims.max_position, 256);
  EXPECT_EQ(config.eos_ids, std::vector<int32_t>{2});
}

TEST(ReadConfig, FieldsOfOtherFamiliesAreNotedWhenTheyWouldChangeTheAnswer) {
  json config = sound();
  config["attn_logit_softcapping"] = 50.0;
  config["residual_multiplier"] = 0.2;
  config["logit_scale"] = 1.0;
  config["clip_qkv"] = nullptr;
  config["sliding_window"] = 16;
  config["layer_types"] = {"full_attention", "full_attention"};
  EXPECT_THAT(read_config(config).notes,
              ElementsAre(AllOf(HasSubstr("/sliding_window"), HasSubstr("LlamaForCausalLM")),
                          HasSubstr("/attn_logit_softcapping has no effect"),
                          HasSubstr("/residual_multiplier has no effect")));
  config["layer_types"][1] = "sliding_attention";
  EXPECT_THAT(read_config(config).notes, Contains(HasSubstr("/layer_types")));
  EXPECT_THAT(read_config(sound()).notes, IsEmpty());
}

TEST(ReadConfig, TheHeadWidthFollowsFromTheOthersWhenItIsNotGiven) {
  json config = sound();
  config.erase("head_dim");
  EXPECT_EQ(read_config(config).dims.head_dim, 64);
  config["head_dim"] = nullptr;
  EXPECT_EQ(read_config(config).dims.head_dim, 64);
}

TEST(ReadConfig, AModelTypeOfAnotherArchitectureIsRefused) {
  json config = sound();
  config["model_type"] = "mistral";
  EXPECT_THAT(refusal(config, Code::BadInput),
              AllOf(HasSubstr("/model_type: \"mistral\""), HasSubstr("LlamaForCausalLM"),
                    HasSubstr("\"llama\"")));
  config["model_type"] = 3;
  EXPECT_THAT(refusal(config, Code::BadInput), HasSubstr("/model_type: expected a name, got 3"));
  config.erase("model_type");
  EXPECT_EQ(read_config(config).architecture, "LlamaForCausalLM");
}

TEST(ReadConfig, AnUnknownArchitectureNamesThoseThatAreKnown) {
  json config = sound();
  config["architectures"] = {"NovelForCausalLM"};
  const std::string message = refusal(config, Code::CannotRun);
  EXPECT_THAT(message, HasSubstr("NovelForCausalLM"));
  ASSERT_FALSE(architecture_names().empty());
  for (const std::string_view known : architecture_names())
    EXPECT_THAT(message, HasSubstr(std::string(known)));
}

TEST(ReadConfig, WhatIsMissingOrAbsurdIsNamed) {
  for (const char* field : {"hidden_size", "num_hidden_layers", "num_attention_heads",
                            "intermediate_size", "vocab_size"}) {
    json config = sound();
    config.erase(field);
    EXPECT_THAT(refusal(config, Code::BadInput), HasSubstr(field));
    for (const json& value : {json(0), json(-1), json("many"), json(1e18), json::array()}) {
      config[field] = value;
      EXPECT_THAT(refusal(config, Code::BadInput), HasSubstr(field)) << value;
    }
  }
}

TEST(ReadConfig, HeadsMustShareKeysEvenly) {
  json config = sound();
  config["num_key_value_heads"] = 3;
  EXPECT_THAT(refusal(config, Code::BadInput), AllOf(HasSubstr("3"), HasSubstr("4")));
}

TEST(ReadConfig, AnUnknownActivationOrRopeIsRefused) {
  json config = sound();
  config["hidden_act"] = "swish-of-the-day";
  EXPECT_THROW(read_config(config), Error);
  config = sound();
  config["rope_scaling"] = {{"rope_type", "spiral"}, {"factor", 2.0}};
  EXPECT_THROW(read_config(config), Error);
}

// The config of a wrapper around a text model of `model_type`.
json wrapped(const char* model_type) {
  json text = sound();
  text.erase("architectures");
  text["model_type"] = model_type;
  return {{"architectures", {"SomethingForConditionalGeneration"}}, {"text_config", text}};
}

TEST(ReadConfig, TheTextModelOfAWrapperIsFoundByItsType) {
  json config = wrapped("qwen2_5_vl_text");
  config["text_config"].erase("tie_word_embeddings");
  config["tie_word_embeddings"] = true;
  config["text_config"].erase("eos_token_id");
  config["eos_token_id"] = 17;
  config["text_config"]["rope_scaling"] = {{"type", "mrope"}, {"mrope_section", {2, 3, 3}}};
  const ModelConfig model = read_config(config);
  EXPECT_EQ(model.architecture, "Qwen2ForCausalLM");
  EXPECT_EQ(model.wrapper, "SomethingForConditionalGeneration");
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_EQ(model.eos_ids, std::vector<int32_t>{17});
  EXPECT_EQ(model.rope.kind, RopeKind::Default);
  EXPECT_THAT(model.notes, ::testing::Contains(HasSubstr("text only")));
}

TEST(ReadConfig, AWrapperAroundAnUnknownTextModelIsRefused) {
  EXPECT_THAT(refusal(wrapped("mllama_text_model"), Code::CannotRun),
              AllOf(HasSubstr("text_config/model_type"), HasSubstr("mllama_text_model"),
                    HasSubstr("SomethingForConditionalGeneration")));
  json config = wrapped("llama");
  config["text_config"].erase("model_type");
  EXPECT_THAT(refusal(config, Code::CannotRun), HasSubstr("/text_config has no model_type"));
  config["text_config"]["model_type"] = 3;
  EXPECT_THAT(refusal(config, Code::BadInput),
              HasSubstr("/text_config/model_type: expected the name of a type, got 3"));
  config = wrapped("llama");
  config.erase("architectures");
  EXPECT_THAT(refusal(config, Code::BadInput), HasSubstr("architectures"));
}

TEST(ReadConfig, ATextConfigThatIsNoObjectIsRefused) {
  for (const char* value : {"[]", "\"x\"", "3", "false"}) {
    json config = sound();
    config["text_config"] = json::parse(value);
    EXPECT_THAT(
        refusal(config, Code::BadInput),
        HasSubstr(std::string("config.json: /text_config: expected an object, got ") + value));
  }
  json config = sound();
  config["text_config"] = nullptr;
  EXPECT_EQ(read_config(config).architecture, "LlamaForCausalLM");
}

TEST(ReadConfig, AHugeValueIsShownInShort) {
  json config = sound();
  config["vocab_size"] = json::array();
  for (int i = 0; i < 10000; ++i) config["vocab_size"].push_back(i);
  EXPECT_LT(refusal(config, Code::BadInput).size(), 300);
}

TEST(ReadConfig, TwoContradictingRopesAreRefused) {
  json config = sound();
  config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.0}};
  config["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 10000.0}};
  EXPECT_THAT(refusal(config, Code::BadInput),
              AllOf(HasSubstr("rope_scaling"), HasSubstr("rope_parameters")));
  config["rope_parameters"] = config["rope_scaling"];
  EXPECT_EQ(read_config(config).rope.factor, 2);
}

TEST(ReadConfig, FieldsOfARopeAreNamedByTheirPath) {
  json config = sound();
  config["rope_parameters"] = {{"rope_type", "linear"}};
  EXPECT_THAT(refusal(config, Code::BadInput), HasSubstr("/rope_parameters/factor"));
  config.erase("rope_parameters");
  config["rope_scaling"] = {{"rope_type", "llama3"}, {"factor", 2.0}};
  EXPECT_THAT(refusal(config, Code::BadInput), HasSubstr("/rope_scaling/low_freq_factor"));
  config["rope_scaling"] = {{"rope_type", "linear"}, {"type", "yarn"}, {"factor", 2.0}};
  EXPECT_THAT(refusal(config, Code::BadInput), HasSubstr("/rope_scaling/type"));
}

TEST(ReadConfig, KeysOfARopeThatSayNothingAreNoted) {
  json config = sound();
  config["rope_scaling"] = {{"factor", 4.0}, {"beta_quick", 32}};
  EXPECT_THAT(read_config(config).notes,
              ::testing::IsSupersetOf({HasSubstr("/rope_scaling/beta_quick is not understood"),
                                       HasSubstr("/rope_scaling/factor has no effect")}));
}

TEST(ReadConfig, APartialRotationOfAFamilyWithoutOneHasNoEffectAndSaysSo) {
  json config = sound();
  config["partial_rotary_factor"] = 0.5;
  const ModelConfig model = read_config(config);
  EXPECT_EQ(model.dims.rotary_dim, model.dims.head_dim);
  EXPECT_THAT(model.notes, ::testing::Contains(HasSubstr("partial_rotary_factor has no effect")));
  config["architectures"] = {"Phi3ForCausalLM"};
  config["model_type"] = "phi3";
  EXPECT_EQ(read_config(config).dims.rotary_dim * 2, read_config(config).dims.head_dim);
}

TEST(ReadConfig, APartOfAHeadThatCannotBeRotatedIsNamedWhereItWasRead) {
  json config = sound();
  config["architectures"] = {"Phi3ForCausalLM"};
  config["model_type"] = "phi3";
  for (const double bad : {0.0, -0.5, 1.5, 1e308}) {
    json other = config;
    other["partial_rotary_factor"] = bad;
    EXPECT_THAT(refusal(other, Code::BadInput),
                AllOf(HasSubstr("config.json: /partial_rotary_factor: expected"),
                      HasSubstr(json(bad).dump())));
    other = config;
    other["rope_parameters"] = {{"rope_type", "default"}, {"partial_rotary_factor", bad}};
    EXPECT_THAT(refusal(other, Code::BadInput),
                AllOf(HasSubstr("config.json: /rope_parameters/partial_rotary_factor: expected"),
                      HasSubstr(json(bad).dump())));
  }
  config["head_dim"] = 64;
  config["partial_rotary_factor"] = 0.55;  // 35 elements
  EXPECT_THAT(refusal(config, Code::BadInput),
              AllOf(HasSubstr("/partial_rotary_factor"), HasSubstr("64"), HasSubstr("not 35")));
  config.erase("partial_rotary_factor");
  config["head_dim"] = 63;
  EXPECT_THAT(refusal(config, Code::BadInput), HasSubstr("/head_dim: expected an even number"));
}

TEST(ReadConfig, AnEpsilonThatDrownsItsRowsIsRefused) {
  json config = sound();
  for (const double epsilon : {-1e-6, 0.0, 1.0, 1.8e19}) {
    config["rms_norm_eps"] = epsilon;
    EXPECT_THAT(refusal(config, Code::BadInput), HasSubstr("/rms_norm_eps")) << epsilon;
  }
  config["rms_norm_eps"] = 0.5;
  EXPECT_EQ(read_config(config).rms_epsilon, 0.5);
}

TEST(ReadConfig, DefaultsAreThoseOfTheFamily) {
  json config = sound();
  config.erase("rms_norm_eps");
  config.erase("max_position_embeddings");
  EXPECT_EQ(read_config(config).rms_epsilon, 1e-6);
  config["architectures"] = {"Phi3ForCausalLM"};
  config["model_type"] = "phi3";
  EXPECT_EQ(read_config(config).rms_epsilon, 1e-5);
  EXPECT_EQ(read_config(config).dims.max_position, 4096);
}

TEST(ReadConfig, LongRopeNeedsAFactorForEveryPair) {
  json config = sound();
  config["head_dim"] = 8;
  config["rope_scaling"] = {{"rope_type", "longrope"},
                            {"short_factor", {1, 1, 1, 1}},
                            {"long_factor", {1, 2, 3, 4}},
                            {"original_max_position_embeddings", 16}};
  EXPECT_EQ(read_config(config).rope.kind, RopeKind::LongRope);
  EXPECT_EQ(read_config(config).rope.long_factor[3], 4);
  for (const json& bad :
       {json({1, 2, 3}), json({1, 2, 3, 0}), json({1, 2, 3, "4"}), json(4), json()}) {
    json other = config;
    other["rope_scaling"]["long_factor"] = bad;
    EXPECT_THAT(refusal(other, Code::BadInput), HasSubstr("long_factor")) << bad;
  }
  config["rope_scaling"]["original_max_position_embeddings"] = 1;
  EXPECT_THAT(refusal(config, Code::BadInput), HasSubstr("original_max_position_embeddings"));
}

json longrope() {
  json config = sound();
  config["head_dim"] = 8;
  config["rope_scaling"] = {{"rope_type", "longrope"},
                            {"short_factor", {1, 1, 1, 1}},
                            {"long_factor", {1, 2, 3, 4}},
                            {"original_max_position_embeddings", 16}};
  return config;
}

TEST(ReadConfig, NumbersOfALongRopeAreInRange) {
  for (const char* key : {"factor", "attention_factor"}) {
    for (const json& bad : {json(0), json(-1), json(1e308), json(1e-320), json("2")}) {
      json config = longrope();
      config["rope_scaling"][key] = bad;
      EXPECT_THAT(refusal(config, Code::BadInput),
                  AllOf(HasSubstr(std::string("config.json: /rope_scaling/") + key + ": expected"),
                        HasSubstr("from 0.0001 to 1000000, got " + bad.dump())));
    }
  }
  for (const char* key : {"short_factor", "long_factor"}) {
    for (const json& bad : {json(0), json(-1), json(1e308), json(1e-320)}) {
      json config = longrope();
      config["rope_scaling"][key][2] = bad;
      EXPECT_THAT(
          refusal(config, Code::BadInput),
          AllOf(HasSubstr(std::string("config.json: /rope_scaling/") + key + "/2: expected"),
                HasSubstr("from 0.0001 to 1000000, got " + bad.dump())));
    }
  }
}

TEST(ReadConfig, FactorsOfEveryRopeAreInRange) {
  for (const char* kind : {"linear", "dynamic", "yarn", "llama3"}) {
    json config = sound();
    config["rope_scaling"] = {
        {"rope_type", kind}, {"factor", 2.0}, {"low_freq_factor", 1.0}, {"high_freq_factor", 4.0}};
    EXPECT_EQ(read_config(config).rope.factor, 2) << kind;
    for (const double bad : {0.0, -1.0, 1e29, 1e308, 1e-320}) {
      config["rope_scaling"]["factor"] = bad;
      EXPECT_THAT(refusal(config, Code::BadInput),
                  AllOf(HasSubstr("/rope_scaling/factor: expected"), HasSubstr(json(bad).dump())))
          << kind;
    }
  }
}

TEST(ReadConfig, FieldsOfYarnAndLlama3AreInRange) {
  json config = sound();
  config["rope_scaling"] = {
      {"rope_type", "yarn"}, {"factor", 2.0}, {"low_freq_factor", 1}, {"high_freq_factor", 4}};
  for (const char* key : {"beta_fast", "beta_slow", "attention_factor", "mscale", "mscale_all_dim",
                          "original_max_position_embeddings", "rope_theta"}) {
    json other = config;
    other["rope_scaling"][key] = -1;
    EXPECT_THAT(refusal(other, Code::BadInput), HasSubstr(std::string("/rope_scaling/") + key));
    other["rope_scaling"][key] = 1e29;
    EXPECT_THAT(refusal(other, Code::BadInput), HasSubstr(std::string("/rope_scaling/") + key));
  }
  config["rope_scaling"]["rope_type"] = "llama3";
  config["rope_scaling"]["high_freq_factor"] = 1 + 1e-12;  // equal in float32
  EXPECT_THAT(refusal(config, Code::BadInput), HasSubstr("/rope_scaling/high_freq_factor"));
}

TEST(ReadConfig, AThetaThatLeavesNoFrequencyIsRefused) {
  for (const double bad : {0.0, -1.0, 0.5, 1e30, 1e308}) {
    json config = sound();
    config["rope_theta"] = bad;
    EXPECT_THAT(refusal(config, Code::BadInput),
                HasSubstr("/rope_theta: expected a number from 1"));
  }
}

TEST(ReadConfig, NumbersThatOnlyTogetherLeaveNoFrequencyAreRefused) {
  json config = sound();
  config["rope_theta"] = 1;  // yarn divides by its logarithm
  config["rope_scaling"] = {
      {"rope_type", "yarn"}, {"factor", 2.0}, {"original_max_position_embeddings", 1000000}};
  EXPECT_THAT(refusal(config, Code::BadInput), AllOf(HasSubstr("config.json: /rope_scaling:"),
                                                     HasSubstr("nan"), HasSubstr("rope_theta")));
}

TEST(ReadConfig, ADynamicRopeGrowsFromTheLengthOfTheModel) {
  json config = sound();
  config["max_position_embeddings"] = 64;
  config["rope_scaling"] = {
      {"type", "dynamic"}, {"factor", 2.0}, {"original_max_position_embeddings", 32}};
  EXPECT_EQ(read_config(config).rope.original_max_position, 64);
  config["rope_scaling"]["factor"] = 0.5;
  EXPECT_THAT(refusal(config, Code::BadInput), HasSubstr("factor"));
}

TEST(ReadConfig, EveryRegisteredNameIsListedOnce) {
  const auto names = architecture_names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace octet
