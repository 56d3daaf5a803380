#include "io/quant_config.h"

#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "testing/broken_files.h"

namespace octet {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kOut = "model.layers.1.self_attn.o_proj";

json fp8(const json& extra = json::object()) {
  json config{{"quant_method", "fp8"}, {"activation_scheme", "dynamic"}};
  config.update(extra);
  return {{"quantization_config", config}};
}

json fp8_block(json exclusions = nullptr) {
  return fp8({{"weight_block_size", {128, 64}}, {"modules_to_not_convert", std::move(exclusions)}});
}

std::string refusal(const json& config) {
  return bad_input([&] { QuantConfig::parse(config); });
}

TEST(QuantConfig, WithoutWordsNothingIsQuantised) {
  for (const char* text : {"{}", R"({"quantization_config": null})",
                           R"({"quantization_config": {}, "text_config": {}})"}) {
    const QuantConfig config = QuantConfig::parse(json::parse(text));
    EXPECT_FALSE(config.quantised());
    EXPECT_FALSE(config.match(kOut));
    EXPECT_EQ(config.method(), "none");
    EXPECT_THAT(config.explain(kOut).rule, HasSubstr("no quantization_config"));
  }
  EXPECT_FALSE(QuantConfig().quantised());
}

TEST(QuantConfig, IsFoundInAllItsPlaces) {
  const json words = fp8()["quantization_config"];
  EXPECT_EQ(QuantConfig::parse({{"quantization_config", words}}).method(), "fp8");
  EXPECT_EQ(QuantConfig::parse({{"text_config", {{"quantization_config", words}}}}).method(),
            "fp8");
  EXPECT_EQ(QuantConfig::parse({{"compression_config", words}}).method(), "fp8");
  EXPECT_EQ(QuantConfig::parse({{"compression_config", {{"quantization_config", words}}}}).method(),
            "fp8");
}

TEST(QuantConfig, TheLegacyKeyNeedsNoMethod) {
  const json words{
      {"format", "naive-quantized"},
      {"config_groups",
       {{"g", {{"targets", {"Linear"}}, {"weights", {{"type", "float"}, {"num_bits", 8}}}}}}}};
  const QuantConfig config = QuantConfig::parse({{"compression_config", words}});
  EXPECT_EQ(config.method(), "compressed-tensors");
  EXPECT_EQ(config.format(), "naive-quantized");
  EXPECT_TRUE(config.match(kOut));
  EXPECT_THAT(
      config.notes(),
      testing::Contains(HasSubstr("compression_config has no quant_method: read as compressed")));
}

TEST(QuantConfig, TheUsualKeyNeedsAMethod) {
  const json words{
      {"config_groups",
       {{"g", {{"targets", {"Linear"}}, {"weights", {{"type", "float"}, {"num_bits", 8}}}}}}}};
  EXPECT_THAT(refusal({{"quantization_config", words}}),
              AllOf(HasSubstr("quantization_config has no \"quant_method\""),
                    HasSubstr("\"compressed-tensors\" and \"fp8\"")));
}

TEST(QuantConfig, OtherMethodsAreRefusedByName) {
  for (const char* method :
       {"fbgemm_fp8", "modelopt", "gptq", "awq", "bitsandbytes", "mxfp4", "quark", "GGUF"}) {
    EXPECT_THAT(refusal({{"quantization_config", {{"quant_method", method}}}}),
                AllOf(HasSubstr("quant_method"), HasSubstr("compressed-tensors")))
        << method;
  }
  EXPECT_THAT(refusal({{"quantization_config", {{"quant_method", "gptq"}}}}),
              HasSubstr("\"gptq\" is not supported"));
  EXPECT_THAT(refusal({{"quantization_config", {{"load_in_8bit", true}}}}),
              HasSubstr("has no \"quant_method\""));
  EXPECT_THAT(refusal({{"quantization_config", {{"quant_method", 8}}}}), HasSubstr("a string"));
  EXPECT_THAT(refusal({{"quantization_config", "fp8"}}), HasSubstr("expected an object"));
}

TEST(QuantConfig, MethodsAreCaseFree) {
  json config = fp8();
  config["quantization_config"]["quant_method"] = "FP8";
  EXPECT_EQ(QuantConfig::parse(config).method(), "fp8");
}

TEST(QuantConfig, CopiesShareOneConfig) {
  const QuantConfig a = QuantConfig::parse(fp8());
  const QuantConfig b = a;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_EQ(a.match(kOut), b.match(kOut));
}

// The golden holds what llm-compressor wrote (tools/golden_quantize.py).
TEST(QuantConfig, ReadsTheConfigsOfLlmCompressor) {
  const json golden =
      json::parse(read_text_file("testing/data/quantize/golden.json", uint64_t{64} << 20));
  const auto spell = [&](const char* form) {
    const QuantConfig config = QuantConfig::parse(golden.at("forms").at(form));
    EXPECT_THAT(config.notes(), testing::IsEmpty()) << form;
    EXPECT_FALSE(config.match("lm_head")) << form;
    const auto quant = config.match(kOut);
    if (!quant) return std::string("nothing");
    return to_string(quant->weight) + " " + (quant->input ? to_string(*quant->input) : "none");
  };
  EXPECT_EQ(spell("fp8-dynamic"), "f8e4m3/row/f32/static f8e4m3/row/f32/dynamic");
  EXPECT_EQ(spell("fp8-block"), "f8e4m3/block128x128/f32/static f8e4m3/group128/f32/dynamic");
  EXPECT_EQ(spell("fp8-static"), "f8e4m3/tensor/f32/static f8e4m3/tensor/f32/static");
  EXPECT_EQ(spell("fp8-weight-only"), "f8e4m3/row/f32/static none");
}

TEST(Fp8Config, BlocksQuantiseTheInputInGroupsOfTheirColumns) {
  const auto quant = QuantConfig::parse(fp8_block()).match(kOut);
  ASSERT_TRUE(quant);
  EXPECT_EQ(to_string(quant->weight), "f8e4m3/block128x64/f32/static");
  EXPECT_EQ(to_string(*quant->input), "f8e4m3/group64/f32/dynamic");
  EXPECT_FALSE(quant->per_token_for_tensor);
}

TEST(Fp8Config, WithoutBlocksInputsAreDynamicPerTokenOrStaticPerTensor) {
  EXPECT_EQ(to_string(*QuantConfig::parse(fp8()).match(kOut)->input), "f8e4m3/row/f32/dynamic");
  const auto fixed = QuantConfig::parse(fp8({{"activation_scheme", "static"}})).match(kOut);
  EXPECT_EQ(to_string(*fixed->input), "f8e4m3/tensor/f32/static");
  EXPECT_EQ(fixed->weight.tile, ScaleTile::tensor());
  EXPECT_TRUE(QuantConfig::parse(fp8()).explain(kOut).tensor_or_row);
  EXPECT_FALSE(QuantConfig::parse(fp8_block()).explain(kOut).tensor_or_row);
}

TEST(Fp8Config, A02ShortExclusionsCountInEveryLayer) {
  const QuantConfig config = QuantConfig::parse(fp8_block({"self_attn.o_proj"}));
  EXPECT_FALSE(config.match("model.layers.0.self_attn.o_proj"));
  EXPECT_FALSE(config.match("model.layers.31.self_attn.o_proj"));
  EXPECT_TRUE(config.match("model.layers.0.self_attn.q_proj"));
}

TEST(Fp8Config, A03ExclusionsMatchWhateverWrappersEitherSideHas) {
  const char* wrapped = "model.language_model.layers.1.mlp.down_proj";
  const char* bare = "model.layers.1.mlp.down_proj";
  for (const char* entry : {wrapped, bare}) {
    const QuantConfig config = QuantConfig::parse(fp8_block({entry}));
    for (const char* module : {wrapped, bare}) {
      EXPECT_EQ(config.explain(module).says, QuantMatch::Says::Plain) << entry << " " << module;
    }
    EXPECT_TRUE(config.match("model.language_model.layers.2.mlp.down_proj"));
    EXPECT_TRUE(config.match("model.visual.layers.1.mlp.down_proj"));
  }
}

TEST(Fp8Config, ParentsAndFusedNamesAreExclusionsToo) {
  const QuantConfig config =
      QuantConfig::parse(fp8_block({"model.visual", "model.layers.0.self_attn.qkv_proj"}));
  EXPECT_FALSE(config.match("model.visual.blocks.3.mlp.up_proj"));
  EXPECT_FALSE(config.match("model.layers.0.self_attn.k_proj"));
  EXPECT_TRUE(config.match("model.layers.1.self_attn.k_proj"));
}

TEST(Fp8Config, ExclusionsMatchWholeComponents) {
  const QuantConfig config = QuantConfig::parse(fp8_block({"mlp.gate", "model.layers.1"}));
  EXPECT_FALSE(config.match("model.layers.0.mlp.gate"));
  EXPECT_EQ(config.explain("model.layers.0.mlp.gate_proj").says, QuantMatch::Says::Quantised);
  EXPECT_EQ(config.explain(kOut).says, QuantMatch::Says::Plain);
}

TEST(Fp8Config, WhereReadersDisagreeTheFilesDecide) {
  const QuantConfig config = QuantConfig::parse(fp8_block({"model.layers.1"}));
  const QuantMatch ten = config.explain("model.layers.10.mlp.up_proj");
  EXPECT_EQ(ten.says, QuantMatch::Says::AsStored);
  EXPECT_THAT(ten.rule, HasSubstr("transformers' rule only"));
  EXPECT_TRUE(ten.quant);
  EXPECT_EQ(config.explain("lm_head").says, QuantMatch::Says::AsStored);
  EXPECT_EQ(config.explain("model.layers.2.mlp.up_proj").says, QuantMatch::Says::Quantised);
}

TEST(Fp8Config, BothNamesOfTheExclusionListCount) {
  for (const char* key : {"ignored_layers", "modules_to_not_convert"}) {
    EXPECT_FALSE(QuantConfig::parse(fp8({{key, {kOut}}})).match(kOut)) << key;
  }
  const QuantConfig both = QuantConfig::parse(
      fp8({{"ignored_layers", {"lm_head"}}, {"modules_to_not_convert", {kOut, ""}}}));
  EXPECT_EQ(both.explain("lm_head").says, QuantMatch::Says::Plain);
  EXPECT_FALSE(both.match(kOut));
  EXPECT_TRUE(both.match("model.layers.1.self_attn.q_proj"));
}

TEST(Fp8Config, A13NullListsEqualAbsentOnes) {
  EXPECT_TRUE(QuantConfig::parse(fp8({{"modules_to_not_convert", nullptr},
                                      {"ignored_layers", nullptr},
                                      {"weight_block_size", nullptr},
                                      {"scale_fmt", nullptr}}))
                  .match(kOut));
}

TEST(Fp8Config, EmbeddingsAreNeverQuantised) {
  EXPECT_FALSE(QuantConfig::parse(fp8()).match("model.embed_tokens", "Embedding"));
}

TEST(Fp8Config, BadWordsAreRefusedWithTheirPlace) {
  EXPECT_THAT(refusal(fp8({{"activation_scheme", nullptr}})),
              HasSubstr("no \"activation_scheme\""));
  EXPECT_THAT(refusal(fp8({{"activation_scheme", "fast"}})),
              HasSubstr("activation_scheme is \"fast\""));
  EXPECT_THAT(refusal(fp8({{"activation_scheme", "static"}, {"weight_block_size", {128, 128}}})),
              HasSubstr("expected \"dynamic\", since weight_block_size is set"));
  for (const json& block : std::vector<json>{json::array({128}), json::array({0, 128}),
                                             json::array({"128", 128}), json("128x128")}) {
    EXPECT_THAT(refusal(fp8({{"weight_block_size", block}})), HasSubstr("weight_block_size"))
        << block;
  }
  EXPECT_THAT(refusal(fp8({{"fmt", "e3m4"}})), HasSubstr("fmt is \"e3m4\""));
  EXPECT_THAT(refusal(fp8({{"ignored_layers", "lm_head"}})),
              HasSubstr("ignored_layers is \"lm_head\", expected an array"));
  EXPECT_THAT(refusal(fp8({{"ignored_layers", {1}}})), HasSubstr("ignored_layers[0] is 1"));
}

TEST(Fp8Config, B23PowerOfTwoActivationScalesAreRefusedByName) {
  EXPECT_THAT(refusal(fp8({{"scale_fmt", "ue8m0"}})), HasSubstr("scale_fmt is \"ue8m0\""));
}

TEST(Fp8Config, OtherCodesAreTheCheckpointsChoice) {
  EXPECT_EQ(QuantConfig::parse(fp8({{"fmt", "e5m2"}})).match(kOut)->weight.dtype, DType::F8E5M2);
}

TEST(Fp8Config, UnknownKeysAreNoted) {
  EXPECT_THAT(QuantConfig::parse(fp8({{"foo_v9", 1}})).notes(), ElementsAre(HasSubstr("foo_v9")));
}

}  // namespace
}  // namespace octet
