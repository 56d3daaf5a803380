#include <nlohmann/json.hpp>

#include "io/quant_config.h"
#include "testing/broken_files.h"

namespace octet {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kQ = "model.layers.0.self_attn.q_proj";
constexpr const char* kV = "model.layers.0.self_attn.v_proj";
constexpr const char* kUp = "model.layers.1.mlp.up_proj";
constexpr const char* kDown = "model.layers.1.mlp.down_proj";

json channel_args() {
  return {{"num_bits", 8}, {"type", "float"}, {"strategy", "channel"}, {"dynamic", false}};
}

json token_args() {
  return {{"num_bits", 8}, {"type", "float"}, {"strategy", "token"}, {"dynamic", true}};
}

json group(json targets, json weights = channel_args(), json input = token_args()) {
  return {{"targets", std::move(targets)},
          {"weights", std::move(weights)},
          {"input_activations", std::move(input)}};
}

json with_groups(json groups, json ignore = json::array()) {
  return {{"quantization_config",
           {{"quant_method", "compressed-tensors"},
            {"format", "float-quantized"},
            {"config_groups", std::move(groups)},
            {"ignore", std::move(ignore)}}}};
}

// One group on class Linear.
json linear(json weights, json input = nullptr) {
  return with_groups({{"group_0", group({"Linear"}, std::move(weights), std::move(input))}});
}

std::optional<LayerQuant> quant_of(const json& config, std::string_view module = kQ) {
  return QuantConfig::parse(config).match(module);
}

std::string refusal(const json& config) {
  return bad_input([&] { QuantConfig::parse(config); });
}

LayerQuant channel_token() {
  return {{DType::F8E4M3, ScaleTile::row(), DType::F32, ScaleTiming::Static},
          QuantSpec{DType::F8E4M3, ScaleTile::row(), DType::F32, ScaleTiming::Dynamic},
          false};
}

TEST(CompressedTensors, ReadsTheThreeUsualSchemes) {
  const auto dynamic = quant_of(linear(channel_args(), token_args()));
  EXPECT_EQ(dynamic, channel_token());

  const json tensor{{"num_bits", 8}, {"type", "float"}, {"strategy", "tensor"}, {"dynamic", false}};
  const auto fixed = quant_of(linear(tensor, tensor));
  ASSERT_TRUE(fixed);
  EXPECT_EQ(to_string(fixed->weight), "f8e4m3/tensor/f32/static");
  EXPECT_EQ(to_string(*fixed->input), "f8e4m3/tensor/f32/static");

  const json block{{"type", "float"}, {"strategy", "block"}, {"block_structure", {128, 64}}};
  const json groups{
      {"type", "float"}, {"strategy", "group"}, {"group_size", 128}, {"dynamic", true}};
  const auto blocks = quant_of(linear(block, groups));
  ASSERT_TRUE(blocks);
  EXPECT_EQ(blocks->weight.tile, ScaleTile::block(128, 64));
  EXPECT_EQ(blocks->input->tile, ScaleTile::group(128));
  EXPECT_EQ(blocks->input->timing, ScaleTiming::Dynamic);
}

TEST(CompressedTensors, WeightOnlyHasNoInput) {
  const auto quant = quant_of(linear(channel_args()));
  ASSERT_TRUE(quant);
  EXPECT_FALSE(quant->input);
}

TEST(CompressedTensors, WeightGroupsOfAnySize) {
  const auto quant = quant_of(linear({{"type", "float"}, {"group_size", 48}}));
  ASSERT_TRUE(quant);
  EXPECT_EQ(quant->weight.tile, ScaleTile::group(48));
}

TEST(CompressedTensors, DynamicPerTensorInputBecomesPerTokenAndSaysSo) {
  json input = token_args();
  input["strategy"] = "tensor";
  const auto quant = quant_of(linear(channel_args(), input));
  ASSERT_TRUE(quant);
  EXPECT_EQ(quant->input->tile, ScaleTile::row());
  EXPECT_TRUE(quant->per_token_for_tensor);
}

TEST(CompressedTensors, Mxfp8IsGroups32WithE8M0) {
  const json weights{
      {"type", "float"}, {"strategy", "group"}, {"group_size", 32}, {"scale_dtype", "torch.uint8"}};
  json input = weights;
  input["dynamic"] = true;
  const auto quant = quant_of(linear(weights, input));
  ASSERT_TRUE(quant);
  EXPECT_EQ(to_string(quant->weight), "f8e4m3/group32/f8e8m0/static");
  EXPECT_EQ(to_string(*quant->input), "f8e4m3/group32/f8e8m0/dynamic");
}

TEST(CompressedTensors, TheMxFormatAloneMeansE8M0) {
  json config = linear({{"type", "float"}, {"group_size", 32}});
  config["quantization_config"]["format"] = "mxfp8-quantized";
  EXPECT_EQ(quant_of(config)->weight.scale_dtype, DType::F8E8M0);
  json of_group = linear({{"type", "float"}, {"group_size", 32}});
  of_group["quantization_config"]["format"] = "mixed-precision";
  of_group["quantization_config"]["config_groups"]["group_0"]["format"] = "mxfp8-quantized";
  EXPECT_EQ(quant_of(of_group)->weight.scale_dtype, DType::F8E8M0);
}

TEST(CompressedTensors, E8M0ScalesNeedGroups32) {
  EXPECT_THAT(refusal(linear({{"type", "float"}, {"group_size", 64}, {"scale_dtype", "uint8"}})),
              HasSubstr("group_0.weights has E8M0 scales over group 64"));
  json channel = channel_args();
  channel["scale_dtype"] = "torch.uint8";
  EXPECT_THAT(refusal(linear(channel)), HasSubstr("E8M0 scales"));
}

TEST(CompressedTensors, A05ExactNamesAreTargets) {
  json names = json::array();
  for (const char* leaf : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                           "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
    names.push_back(fmt::format("model.layers.0.{}", leaf));
  }
  const QuantConfig config = QuantConfig::parse(with_groups({{"group_0", group(names)}}));
  EXPECT_TRUE(config.match(kQ));
  EXPECT_TRUE(config.match(kV));
  EXPECT_FALSE(config.match("model.layers.0.self_attn.o_proj"));
  EXPECT_FALSE(config.match("model.layers.1.mlp.down_proj"));
  EXPECT_FALSE(config.match("lm_head"));
}

TEST(CompressedTensors, A08TheClassTargetMeansEveryDenseLayerInAnyCase) {
  for (const char* target : {"Linear", "linear", "LinearBase"}) {
    const QuantConfig config =
        QuantConfig::parse(with_groups({{"group_0", group({target})}}, {"lm_head"}));
    EXPECT_TRUE(config.match(kQ)) << target;
    EXPECT_TRUE(config.match(kDown)) << target;
    EXPECT_FALSE(config.match("lm_head")) << target;
    EXPECT_FALSE(config.match("model.embed_tokens", "Embedding")) << target;
  }
}

TEST(CompressedTensors, A09ARegexWithoutAClassTarget) {
  const QuantConfig config = QuantConfig::parse(
      with_groups({{"group_0", group({R"(re:.*mlp\.experts\.\d+\.(gate|up|down)_proj$)"})}}));
  EXPECT_TRUE(config.match("model.layers.0.mlp.experts.3.down_proj"));
  EXPECT_FALSE(config.match(kQ));
}

TEST(CompressedTensors, A15TheHeadIsQuantisedWhenATargetNamesIt) {
  const QuantConfig config =
      QuantConfig::parse(with_groups({{"group_0", group({"Linear", "re:.*lm_head"})}}));
  EXPECT_TRUE(config.match("lm_head"));
}

TEST(CompressedTensors, AnExactNameWinsOverARegexThatOverAClass) {
  json block{{"type", "float"}, {"strategy", "block"}, {"block_structure", {128, 128}}};
  json tensor{{"type", "float"}, {"strategy", "tensor"}};
  const QuantConfig config =
      QuantConfig::parse(with_groups({{"a", group({"Linear"})},
                                      {"b", group({"re:.*self_attn.*"}, block, nullptr)},
                                      {"c", group({kQ}, tensor, nullptr)}}));
  EXPECT_EQ(config.match(kQ)->weight.tile, ScaleTile::tensor());
  EXPECT_EQ(config.match(kV)->weight.tile, ScaleTile::block(128, 128));
  EXPECT_EQ(config.match(kUp)->weight.tile, ScaleTile::row());
}

TEST(CompressedTensors, OfTwoExpressionsTheFirstInTheAlphabetWinsAsInTheLibrary) {
  json tensor{{"type", "float"}, {"strategy", "tensor"}};
  const QuantConfig config = QuantConfig::parse(
      with_groups({{"a", group({"re:.*q_proj"})}, {"b", group({"re:.*attn.*"}, tensor, nullptr)}}));
  EXPECT_EQ(config.match(kQ)->weight.tile, ScaleTile::tensor());
}

TEST(CompressedTensors, IgnoreWinsOverEveryTarget) {
  const QuantConfig config = QuantConfig::parse(
      with_groups({{"g", group({"Linear", kQ, "re:.*v_proj"})}}, {kQ, "re:.*v_proj"}));
  EXPECT_FALSE(config.match(kQ));
  EXPECT_FALSE(config.match(kV));
  EXPECT_TRUE(config.match(kUp));
  EXPECT_EQ(config.explain(kQ).rule, fmt::format("ignore \"{}\"", kQ));
  EXPECT_EQ(config.explain(kV).rule, "ignore \"re:.*v_proj\"");
}

TEST(CompressedTensors, AnIgnoredClassIsIgnored) {
  const QuantConfig config =
      QuantConfig::parse(with_groups({{"g", group({"re:.*"})}}, {"Embedding"}));
  EXPECT_FALSE(config.match("model.embed_tokens", "Embedding"));
  EXPECT_TRUE(config.match(kQ));
}

TEST(CompressedTensors, A04FusedNamesInIgnoreCountForTheirParts) {
  const QuantConfig config = QuantConfig::parse(
      with_groups({{"g", group({"Linear"})}},
                  {"model.layers.0.self_attn.qkv_proj", R"(re:.*layers\.1\.mlp\.gate_up_proj)"}));
  EXPECT_FALSE(config.match(kQ));
  EXPECT_FALSE(config.match("model.layers.0.self_attn.qkv_proj"));
  EXPECT_TRUE(config.match("model.layers.1.self_attn.q_proj"));
  EXPECT_FALSE(config.match(kUp));
  EXPECT_TRUE(config.match(kDown));
}

TEST(CompressedTensors, A06ARegexForOnePartDoesNotCatchTheOthers) {
  const QuantConfig ignored =
      QuantConfig::parse(with_groups({{"g", group({"Linear"})}}, {"re:.*v_proj"}));
  EXPECT_TRUE(ignored.match(kQ));
  EXPECT_FALSE(ignored.match(kV));
  const QuantConfig wanted = QuantConfig::parse(with_groups({{"g", group({"re:.*up_proj"})}}));
  EXPECT_TRUE(wanted.match(kUp));
  EXPECT_FALSE(wanted.match("model.layers.1.mlp.gate_proj"));
}

TEST(CompressedTensors, A03NamesMatchWhateverWrappersEitherSideHas) {
  const QuantConfig config = QuantConfig::parse(
      with_groups({{"g", group({"Linear"})}},
                  {"model.layers.1.mlp.down_proj", "language_model.model.layers.2.mlp.down_proj"}));
  EXPECT_FALSE(config.match("model.language_model.layers.1.mlp.down_proj"));
  EXPECT_FALSE(config.match("model.layers.2.mlp.down_proj"));
  EXPECT_TRUE(config.match("model.visual.layers.1.mlp.down_proj"));
}

TEST(CompressedTensors, A16AnEntryOneLeafLongerLeavesItToTheFiles) {
  const QuantConfig config = QuantConfig::parse(
      with_groups({{"g", group({"Linear"})}}, {"model.layers.0.self_attn.q_proj.linear"}));
  EXPECT_EQ(config.explain(kQ).says, QuantMatch::Says::AsStored);
  EXPECT_EQ(config.explain(kV).says, QuantMatch::Says::Quantised);
  EXPECT_FALSE(config.match(kQ));
}

TEST(CompressedTensors, A17APlainNameOrAnUnprefixedRegexDoesNotReachAPrefixedHead) {
  const auto head = [](const char* entry) {
    return QuantConfig::parse(with_groups({{"g", group({"Linear"})}}, {entry}))
        .explain("language_model.lm_head");
  };
  EXPECT_EQ(head("lm_head").says, QuantMatch::Says::Quantised);
  EXPECT_EQ(head("re:lm_head").says, QuantMatch::Says::Quantised);
  EXPECT_THAT(head("lm_head").rule, HasSubstr("no ignore entry names it"));
  EXPECT_EQ(head("re:.*lm_head").says, QuantMatch::Says::Plain);
}

TEST(CompressedTensors, A18ARegexWithoutAnEndCatchesWhatBeginsLikeIt) {
  const QuantConfig config =
      QuantConfig::parse(with_groups({{"g", group({"Linear"})}}, {R"(re:model\.layers\.1)"}));
  for (const int layer : {1, 10, 11}) {
    EXPECT_FALSE(config.match(fmt::format("model.layers.{}.mlp.up_proj", layer))) << layer;
  }
  EXPECT_TRUE(config.match("model.layers.2.mlp.up_proj"));
}

TEST(CompressedTensors, A11UnknownKeysAreNotedOnceAndNullsAreNot) {
  json weights = channel_args();
  json input = token_args();
  for (json* args : {&weights, &input}) {
    (*args)["scale_dtype"] = nullptr;
    (*args)["zp_dtype"] = nullptr;
    (*args)["foo_v9"] = 1;
    (*args)["bar_v9"] = nullptr;
  }
  const QuantConfig config = QuantConfig::parse(linear(weights, input));
  EXPECT_EQ(config.match(kQ), channel_token());
  EXPECT_THAT(config.notes(), ElementsAre(AllOf(HasSubstr("foo_v9"), HasSubstr("group_0"))));
}

TEST(CompressedTensors, A12MistypedActivationsStopInsteadOfVanishing) {
  json input = token_args();
  input["strategy"] = "tokens";
  EXPECT_THAT(
      refusal(linear(channel_args(), input)),
      HasSubstr("config_groups.group_0.input_activations.strategy is \"tokens\", expected one of"));
  input = token_args();
  input["num_bits"] = "8";
  EXPECT_THAT(refusal(linear(channel_args(), input)),
              HasSubstr("group_0.input_activations.num_bits is \"8\", expected a whole number"));
  EXPECT_THAT(refusal(linear(channel_args(), "token")),
              HasSubstr("input_activations is \"token\", expected an object"));
}

TEST(CompressedTensors, A13NullEqualsAbsent) {
  json args = channel_args();
  for (const char* key : {"observer", "actorder", "block_structure", "group_size"}) {
    args[key] = nullptr;
  }
  json config = linear(args);
  json& quant = config["quantization_config"];
  for (const char* key : {"ignore", "kv_cache_scheme", "sparsity_config", "transform_config",
                          "global_compression_ratio", "version"}) {
    quant[key] = nullptr;
  }
  quant["config_groups"]["group_0"]["output_activations"] = nullptr;
  quant["config_groups"]["group_0"]["format"] = nullptr;
  EXPECT_TRUE(quant_of(config));
  EXPECT_THAT(QuantConfig::parse(config).notes(), IsEmpty());
}

TEST(CompressedTensors, EmptyObjectsOfOffFeaturesLoad) {
  json config = linear(channel_args());
  json& quant = config["quantization_config"];
  for (const char* key : {"sparsity_config", "transform_config", "moe_sparsity_config",
                          "kv_cache_scheme", "a_key_of_tomorrow"}) {
    quant[key] = json::object();
  }
  EXPECT_TRUE(quant_of(config));
  EXPECT_THAT(QuantConfig::parse(config).notes(), IsEmpty());
}

TEST(CompressedTensors, A14GroupNamesAreFreeText) {
  json tensor{{"type", "float"}, {"strategy", "tensor"}};
  const QuantConfig config = QuantConfig::parse(with_groups(
      {{"FP8_DYNAMIC", group({"re:.*attn.*"})}, {"", group({"re:.*mlp.*"}, tensor, nullptr)}}));
  EXPECT_EQ(config.match(kQ), channel_token());
  EXPECT_EQ(config.match(kUp)->weight.tile, ScaleTile::tensor());
}

TEST(CompressedTensors, A19SparseAndOddCasedArguments) {
  EXPECT_EQ(quant_of(linear({{"num_bits", 8}, {"type", "FLOAT"}}))->weight.tile,
            ScaleTile::tensor());
  EXPECT_EQ(quant_of(linear({{"type", "float"}, {"group_size", -1}}))->weight.tile,
            ScaleTile::row());
  EXPECT_EQ(
      quant_of(linear({{"type", "float"}, {"strategy", "Block"}, {"block_structure", "128x64"}}))
          ->weight.tile,
      ScaleTile::block(128, 64));
  json token = token_args();
  token["dynamic"] = false;
  EXPECT_THAT(refusal(linear(channel_args(), token)),
              HasSubstr("strategy is \"token\", expected tensor, or \"dynamic\": true"));
}

TEST(CompressedTensors, OnlySymmetricEightBitFloatsAreTaken) {
  const auto weights = [](const char* key, const json& value) {
    json args = channel_args();
    args[key] = value;
    return refusal(linear(args));
  };
  EXPECT_THAT(weights("num_bits", 4), HasSubstr("group_0.weights.num_bits is 4, expected 8"));
  EXPECT_THAT(weights("type", "int"), HasSubstr("type is \"int\", expected \"float\""));
  EXPECT_THAT(weights("type", nullptr), HasSubstr("no \"type\", which means \"int\""));
  EXPECT_THAT(weights("symmetric", false), HasSubstr("symmetric is false"));
  EXPECT_THAT(weights("dynamic", true), HasSubstr("dynamic is true, expected false"));
  EXPECT_THAT(weights("dynamic", "local"), HasSubstr("dynamic is \"local\""));
  EXPECT_THAT(weights("strategy", "token"), HasSubstr("strategy is \"token\""));
  EXPECT_THAT(weights("strategy", "tensor_group"),
              HasSubstr("strategy tensor_group but group_size 0"));
  EXPECT_THAT(weights("strategy", 3), HasSubstr("strategy is 3, expected a string"));
  EXPECT_THAT(weights("actorder", "group"), HasSubstr("actorder is \"group\""));
  EXPECT_THAT(weights("actorder", true), HasSubstr("actorder is true"));
  EXPECT_THAT(weights("scale_dtype", "int4"), HasSubstr("scale_dtype is \"int4\""));
  EXPECT_THAT(weights("group_size", 64), HasSubstr("the strategy is channel"));
  EXPECT_THAT(weights("group_size", -7), HasSubstr("group_size is -7"));
  EXPECT_THAT(weights("block_structure", {128, 128}), HasSubstr("the strategy is channel"));
}

TEST(CompressedTensors, BlocksNeedTwoPositiveNumbers) {
  const auto block = [](const json& value) {
    return refusal(linear({{"type", "float"}, {"strategy", "block"}, {"block_structure", value}}));
  };
  for (const json& value :
       std::vector<json>{"128", "128x", "x128", "128x128x", "0x128", "-1x2", json::array({128}),
                         json::array({128, 0}), json::array({128, 128, 1}), json::array({1, 1e3}),
                         json::array({1, 9223372036854775807})}) {
    EXPECT_THAT(block(value), HasSubstr("block_structure")) << value;
  }
  EXPECT_THAT(block(nullptr), HasSubstr("strategy block but no block_structure"));
}

TEST(CompressedTensors, InputsTakeTensorTokenAndGroupOnly) {
  const auto input = [](const char* strategy, bool dynamic) {
    json args{{"type", "float"}, {"strategy", strategy}, {"dynamic", dynamic}};
    if (std::string_view(strategy) == "group") args["group_size"] = 128;
    return refusal(linear(channel_args(), args));
  };
  EXPECT_THAT(input("channel", false), HasSubstr("one of tensor, token, group"));
  EXPECT_THAT(input("attn_head", false), HasSubstr("one of tensor, token, group"));
  EXPECT_THAT(input("group", false), HasSubstr("groups of inputs have no stored scale"));
  EXPECT_THAT(input("block", false), HasSubstr("strategy block but no block_structure"));
}

TEST(CompressedTensors, OtherFormatsAreRefusedByName) {
  for (const char* format : {"int-quantized", "pack-quantized", "nvfp4-pack-quantized", "marlin-24",
                             "sparse-24-bitmask", "dense", "what"}) {
    json config = linear(channel_args());
    config["quantization_config"]["format"] = format;
    EXPECT_THAT(refusal(config), HasSubstr(fmt::format("format is \"{}\"", format)));
  }
  json config = linear(channel_args());
  config["quantization_config"]["format"] = "mixed-precision";
  EXPECT_TRUE(quant_of(config));
  config["quantization_config"]["config_groups"]["group_0"]["format"] = "pack-quantized";
  EXPECT_THAT(refusal(config), HasSubstr("group_0.format is \"pack-quantized\""));
}

TEST(CompressedTensors, SparsityAndTransformsAreRefused) {
  json config = linear(channel_args());
  config["quantization_config"]["sparsity_config"] = {{"format", "sparse-24-bitmask"}};
  EXPECT_THAT(refusal(config), HasSubstr("sparsity_config.format"));
  config["quantization_config"]["sparsity_config"] = {{"format", "dense"}, {"targets", {"Linear"}}};
  EXPECT_THAT(refusal(config), HasSubstr("sparsity_config.targets"));
  config["quantization_config"]["sparsity_config"] = {{"format", "dense"},
                                                      {"targets", json::array()}};
  config["quantization_config"]["transform_config"] = {{"config_groups", {{"u", {{"type", "h"}}}}}};
  EXPECT_THAT(refusal(config), HasSubstr("transform_config.config_groups"));
}

TEST(CompressedTensors, GroupsNeedTargetsAndWeights) {
  EXPECT_THAT(refusal(with_groups({{"g", {{"weights", channel_args()}}}})),
              HasSubstr("config_groups.g has no \"targets\""));
  EXPECT_THAT(refusal(with_groups({{"g", {{"targets", {"Linear"}}}}})),
              HasSubstr("config_groups.g has no \"weights\""));
  EXPECT_THAT(refusal(with_groups({{"g", group("Linear")}})),
              HasSubstr("targets is \"Linear\", expected an array"));
  EXPECT_THAT(refusal(with_groups({{"g", group({1})}})), HasSubstr("targets[0] is 1"));
  EXPECT_THAT(refusal(with_groups({{"g", 7}})), HasSubstr("config_groups.g is 7"));
  EXPECT_THAT(refusal(with_groups(json::array())), HasSubstr("config_groups is []"));
  EXPECT_THAT(refusal(with_groups({{"g", group({"re:("})}})), HasSubstr("targets[0]"));
}

TEST(CompressedTensors, OneTargetWithTwoSchemesIsRefused) {
  json tensor{{"type", "float"}, {"strategy", "tensor"}};
  EXPECT_THAT(
      refusal(with_groups({{"a", group({"Linear"})}, {"b", group({"Linear"}, tensor, nullptr)}})),
      AllOf(HasSubstr("b.targets[0]"), HasSubstr("group \"a\"")));
  EXPECT_THAT(
      refusal(with_groups({{"a", group({"re:.*q"})}, {"b", group({"re:.*q"}, tensor, nullptr)}})),
      HasSubstr("group \"a\""));
  EXPECT_TRUE(quant_of(with_groups({{"a", group({"Linear"})}, {"b", group({"Linear"})}})));
}

TEST(CompressedTensors, AttentionGroupsHaveNoEffectAndSaySo) {
  const QuantConfig config = QuantConfig::parse(
      with_groups({{"a", group({"Linear"})}, {"kv", {{"targets", {"LlamaAttention"}}}}}));
  EXPECT_TRUE(config.match(kQ));
  EXPECT_THAT(config.notes(), ElementsAre(HasSubstr("config_groups.kv")));
}

TEST(CompressedTensors, OutputActivationsHaveNoEffectAndSaySo) {
  json with_output = group({"Linear"});
  with_output["output_activations"] = token_args();
  const QuantConfig config = QuantConfig::parse(with_groups({{"g", with_output}}));
  EXPECT_THAT(config.notes(), ElementsAre(HasSubstr("output_activations has no effect")));
}

TEST(CompressedTensors, NamedSchemesStandForTheirArguments) {
  EXPECT_EQ(quant_of(with_groups({{"FP8_DYNAMIC", {"Linear"}}})), channel_token());
  EXPECT_EQ(quant_of(with_groups({{"fp8_block", {"Linear"}}}))->weight.tile,
            ScaleTile::block(128, 128));
  EXPECT_EQ(quant_of(with_groups({{"FP8", {"Linear"}}}))->input->timing, ScaleTiming::Static);
  EXPECT_EQ(quant_of(with_groups({{"MXFP8", {"Linear"}}}))->input->scale_dtype, DType::F8E8M0);
  EXPECT_FALSE(quant_of(with_groups({{"MXFP8A16", {"Linear"}}}))->input);
  EXPECT_THAT(refusal(with_groups({{"W4A16", {"Linear"}}})),
              AllOf(HasSubstr("config_groups.W4A16"), HasSubstr("FP8_DYNAMIC")));
}

TEST(CompressedTensors, TheKvSchemeIsRead) {
  json config = linear(channel_args());
  json& scheme = config["quantization_config"]["kv_cache_scheme"];
  EXPECT_FALSE(QuantConfig::parse(config).kv_cache());
  scheme = {{"num_bits", 8}, {"type", "float"}, {"strategy", "tensor"}, {"dynamic", false}};
  EXPECT_EQ(QuantConfig::parse(config).kv_cache(), KvQuant{});
  scheme["strategy"] = "attn_head";
  EXPECT_EQ(QuantConfig::parse(config).kv_cache()->tile, ScaleTile::row());
  scheme = {{"num_bits", 4}, {"type", "int"}};
  const QuantConfig other = QuantConfig::parse(config);
  EXPECT_FALSE(other.kv_cache());
  EXPECT_THAT(other.notes(), ElementsAre(HasSubstr("kv_cache_scheme")));
  scheme = {{"num_bits", 8}, {"type", "float"}, {"strategy", "group"}, {"group_size", 64}};
  const QuantConfig groups = QuantConfig::parse(config);
  EXPECT_FALSE(groups.kv_cache());
  EXPECT_THAT(groups.notes(),
              ElementsAre(HasSubstr("strategy group is not supported for a KV cache")));
  scheme = "fp8";
  EXPECT_THAT(refusal(config), HasSubstr("kv_cache_scheme is \"fp8\""));
}

TEST(CompressedTensors, AConfigWithoutGroupsQuantisesNothing) {
  json config = with_groups(json::object());
  config["quantization_config"]["format"] = "dense";
  const QuantConfig quant = QuantConfig::parse(config);
  EXPECT_FALSE(quant.quantised());
  EXPECT_FALSE(quant.match(kQ));
  EXPECT_EQ(quant.explain(kQ).rule, "no target names it");
}

}  // namespace
}  // namespace octet
