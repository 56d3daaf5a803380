// Section A of the cases: what quantisation configs of the field say, and which layers they mean.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/cases/case_model.h"
#include "tests/integration/process.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

bool is_in_layer(std::string_view module, int layer) {
  return module.find(fmt::format(".layers.{}.", layer)) != std::string_view::npos;
}

// A model whose modules `plain` says yes to stay in bfloat16.
TinyModel with_plain(TinyModel model, std::function<bool(std::string_view)> plain) {
  model.quant_of = [plain = std::move(plain)](std::string_view module) {
    return module == "lm_head" || plain(module) ? std::optional(tiny_plain()) : std::nullopt;
  };
  return model;
}

json& words(TinyCheckpoint& checkpoint) {
  return checkpoint.config()["quantization_config"];
}
json& group_0(TinyCheckpoint& checkpoint) {
  return words(checkpoint)["config_groups"]["group_0"];
}

// Turns a text model into the text part of a wrapper whose tensors begin with `prefix`.
void wrap(TinyCheckpoint& checkpoint, const std::string& prefix, const std::string& head) {
  checkpoint.move_all("model.", prefix);
  if (head != "lm_head") checkpoint.move_all("lm_head.", head + ".");
  json text = checkpoint.config();
  json quant = text["quantization_config"];
  text.erase("quantization_config");
  text.erase("architectures");
  checkpoint.config() = {{"architectures", {"LlavaForConditionalGeneration"}},
                         {"model_type", "llava"},
                         {"text_config", text},
                         {"quantization_config", quant}};
}

TEST(CaseA02, AShortExclusionPathCountsInEveryLayer) {
  const TinyFolder folder;
  const TinyModel model = with_plain(
      m0_block(), [](std::string_view module) { return module.ends_with("self_attn.o_proj"); });
  TinyCheckpoint checkpoint = tiny_model(model);
  words(checkpoint)["modules_to_not_convert"] = {"self_attn.o_proj"};
  checkpoint.write(folder.path());
  EXPECT_EQ(count_stored(planned(folder.path())), (Stored{12, 3}));
  expect_reference(folder.path(), checkpoint, model);
}

TEST(CaseA03, AnExclusionCountsWithAndWithoutTheWrappersPrefix) {
  const TinyModel model = with_plain(
      m0_block(), [](std::string_view module) { return module == "model.layers.1.mlp.down_proj"; });
  const TinyCheckpoint reference = tiny_model(model);
  for (const char* entry :
       {"model.language_model.layers.1.mlp.down_proj", "model.layers.1.mlp.down_proj"}) {
    const TinyFolder folder;
    TinyCheckpoint checkpoint = tiny_model(model);
    words(checkpoint)["modules_to_not_convert"] = {entry};
    wrap(checkpoint, "model.language_model.", "lm_head");
    checkpoint.write(folder.path());
    const Prepared prepared = planned(folder.path());
    EXPECT_FALSE(
        is_f8(quant_of(prepared, "model.language_model.layers.1.mlp.down_proj").weight.dtype));
    EXPECT_EQ(count_stored(prepared), (Stored{13, 2})) << entry;
    expect_reference(folder.path(), reference, model);
  }
}

TEST(CaseA04, AStoredFusedTensorMayBeIgnoredByItsOwnName) {
  const TinyFolder folder;
  const TinyModel model = with_plain(m0_channel(), [](std::string_view module) {
    return is_in_layer(module, 0) &&
           (module.ends_with("q_proj") || module.ends_with("k_proj") || module.ends_with("v_proj"));
  });
  const TinyCheckpoint reference = tiny_model(model);
  TinyCheckpoint checkpoint = tiny_model(model);
  store_as_phi3(checkpoint, model.layers);
  words(checkpoint)["ignore"] = {"lm_head", "model.layers.0.self_attn.qkv_proj"};
  checkpoint.write(folder.path());
  const Prepared prepared = planned(folder.path());
  EXPECT_FALSE(is_f8(quant_of(prepared, "model.layers.0.self_attn.qkv_proj.k").weight.dtype));
  EXPECT_TRUE(is_f8(quant_of(prepared, "model.layers.1.self_attn.qkv_proj.k").weight.dtype));
  expect_reference(folder.path(), reference, model);
}

TEST(CaseA05, TargetsMayBeFullNamesOfPartsThatEnginesFuse) {
  const TinyFolder folder;
  const TinyModel model = with_plain(m0_channel(), [](std::string_view module) {
    return is_in_layer(module, 1) || module.ends_with("o_proj");
  });
  TinyCheckpoint checkpoint = tiny_model(model);
  json targets;
  for (const char* part : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                           "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
    targets.push_back(fmt::format("model.layers.0.{}", part));
  }
  group_0(checkpoint)["targets"] = targets;
  words(checkpoint)["ignore"] = json::array();
  checkpoint.write(folder.path());
  EXPECT_EQ(count_stored(planned(folder.path())), (Stored{6, 9}));  // the head is the ninth
  expect_reference(folder.path(), checkpoint, model);
}

TEST(CaseA06, PartsOfAFusedProjectionMayDifferInPrecision) {
  const TinyFolder folder;
  const TinyModel model = with_plain(m0_channel(), [](std::string_view module) {
    return module == "model.layers.1.self_attn.v_proj";
  });
  TinyCheckpoint checkpoint = tiny_model(model);
  checkpoint.write(folder.path());
  EXPECT_EQ(count_stored(planned(folder.path())), (Stored{13, 2}));
  expect_reference(folder.path(), checkpoint, model);
}

// Replaces the MLPs by `experts` experts each.
void add_experts(TinyCheckpoint& checkpoint, int64_t layers, int experts, bool plain_in_layer_1) {
  for (int64_t i = 0; i < layers; ++i) {
    const std::string mlp = fmt::format("model.layers.{}.mlp.", i);
    for (const char* part : {"gate_proj", "up_proj", "down_proj"}) {
      checkpoint.remove(mlp + part + ".weight");
      checkpoint.remove(mlp + part + ".weight_scale");
    }
    checkpoint.add_normal(mlp + "gate.weight", DType::BF16, {experts, 256}, 0.1F);
    const bool plain = plain_in_layer_1 && i == 1;
    for (int e = 0; e < experts; ++e) {
      const std::string expert = fmt::format("{}experts.{}.", mlp, e);
      const LayerQuant quant = plain ? tiny_plain() : tiny_fp8_dynamic(DType::F32);
      checkpoint.add_linear(expert + "gate_proj", 192, 256, quant);
      checkpoint.add_linear(expert + "up_proj", 192, 256, quant);
      checkpoint.add_linear(expert + "down_proj", 256, 192, quant);
    }
  }
  checkpoint.config()["num_experts"] = experts;
  checkpoint.config()["num_experts_per_tok"] = 2;
  checkpoint.config()["moe_intermediate_size"] = 192;
}

// Experts are recognised and refused by name, with the other layers planned.
void expect_experts_are_refused(const std::filesystem::path& dir) {
  const Prepared prepared = planned(dir);
  ASSERT_EQ(prepared.plan.failures.size(), 2U);
  for (const std::string& failure : prepared.plan.failures)
    EXPECT_THAT(failure, AllOf(HasSubstr("mlp.experts"), HasSubstr("not computed")));
  EXPECT_TRUE(is_f8(quant_of(prepared, "model.layers.0.self_attn.q_proj").weight.dtype) ||
              !prepared.checkpoint.quant().match("model.layers.0.self_attn.q_proj"));
  EXPECT_EQ(run_octet({"plan", dir.string()}).status, 3);
}

TEST(CaseA07, AnUnquantisedExpertLayerIsRefusedAsExpertsAre) {
  const TinyFolder folder;
  TinyCheckpoint checkpoint = tiny_model(m0_channel());
  add_experts(checkpoint, 2, 4, true);
  words(checkpoint)["ignore"] = {"lm_head", R"(re:.*layers\.1\.mlp\.experts\..*)",
                                 "re:.*mlp.gate$"};
  checkpoint.write(folder.path());
  expect_experts_are_refused(folder.path());
  const QuantConfig quant = QuantConfig::parse(checkpoint.config());
  EXPECT_TRUE(quant.match("model.layers.0.mlp.experts.3.up_proj"));
  EXPECT_FALSE(quant.match("model.layers.1.mlp.experts.3.up_proj"));
}

TEST(CaseA08, TheClassTargetMeansEveryProjectionOfEveryArchitecture) {
  for (const char* name : {"llama-plain", "mistral-full", "qwen2-tied", "qwen3-bias", "phi3-plain",
                           "olmo2-plain", "glm4-no-bias", "llava-llama", "qwen25-vl"}) {
    const TinyFolder folder;
    const std::filesystem::path out = folder.path() / name;
    const std::vector<std::string> command{"quantize", std::string("testing/data/archs/") + name,
                                           out.string(), "--scheme", "fp8-dynamic"};
    const Ran ran = run_octet(command);
    ASSERT_EQ(ran.status, 0) << describe_run(command, ran);
    const Prepared prepared = planned(out);
    for (const LinearRecord& record : prepared.records)
      EXPECT_EQ(is_f8(record.quant.weight.dtype), !record.module.ends_with("lm_head"))
          << record.module;
  }
}

TEST(CaseA09, ExpertsTargetedByARegexAloneAreRefusedAndTheRestIsPlain) {
  const TinyFolder folder;
  TinyModel model = m0_channel();
  TinyCheckpoint checkpoint = tiny_model(model);
  add_experts(checkpoint, 2, 4, false);
  for (int i = 0; i < 2; ++i) {
    for (const char* part : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
      const std::string module = fmt::format("model.layers.{}.self_attn.{}", i, part);
      const bool narrow = part[0] == 'k' || part[0] == 'v';
      checkpoint.remove(module + ".weight_scale");
      checkpoint.add_normal(module + ".weight", DType::BF16, {narrow ? 128 : 256, 256}, 0.06F);
    }
  }
  group_0(checkpoint)["targets"] = {R"(re:.*mlp\.experts\.\d+\.(gate|up|down)_proj$)"};
  words(checkpoint)["ignore"] = json::array();
  checkpoint.write(folder.path());
  expect_experts_are_refused(folder.path());
}

TEST(CaseA11, UnknownKeysAreNotedAndNullsAreNot) {
  const TinyFolder folder;
  const TinyModel model = m0_channel();
  TinyCheckpoint checkpoint = tiny_model(model);
  for (const char* part : {"weights", "input_activations"}) {
    json& args = group_0(checkpoint)[part];
    args["scale_dtype"] = nullptr;
    args["zp_dtype"] = nullptr;
    args["foo_v9"] = 1;
  }
  checkpoint.write(folder.path());
  const std::string notes = all_notes(planned(folder.path()));
  EXPECT_THAT(notes, AllOf(HasSubstr("foo_v9"), Not(HasSubstr("scale_dtype"))));
  EXPECT_EQ(notes.find("foo_v9", notes.find("foo_v9") + 1), std::string::npos) << notes;
  group_0(checkpoint)["weights"]["num_bits"] = 4;
  checkpoint.write(folder.path());
  EXPECT_THAT(refusal_of([&] { planned(folder.path()); }), HasSubstr("num_bits"));
}

TEST(CaseA12, MistypedActivationWordsStopTheStart) {
  const TinyFolder folder;
  TinyCheckpoint checkpoint = tiny_model(m0_channel());
  group_0(checkpoint)["input_activations"]["strategy"] = "tokens";
  checkpoint.write(folder.path());
  EXPECT_THAT(refusal_of([&] { planned(folder.path()); }),
              AllOf(HasSubstr("group_0.input_activations.strategy"), HasSubstr("tokens")));
  group_0(checkpoint)["input_activations"]["strategy"] = "token";
  group_0(checkpoint)["input_activations"]["num_bits"] = "8";
  checkpoint.write(folder.path());
  EXPECT_THAT(refusal_of([&] { planned(folder.path()); }),
              HasSubstr("group_0.input_activations.num_bits"));
  for (const json& nothing : {json(""), json::array(), json::object()}) {
    group_0(checkpoint)["input_activations"] = nothing;
    checkpoint.write(folder.path());
    EXPECT_THAT(refusal_of([&] { planned(folder.path()); }), HasSubstr("group_0.input_activations"))
        << nothing;
  }
}

TEST(CaseA13, NullEqualsAbsent) {
  const TinyFolder folder;
  const TinyModel model = m0_channel();
  TinyCheckpoint checkpoint = tiny_model(model);
  json& weights = group_0(checkpoint)["weights"];
  for (const char* key : {"observer", "actorder", "block_structure"}) weights[key] = nullptr;
  group_0(checkpoint)["output_activations"] = nullptr;
  words(checkpoint)["kv_cache_scheme"] = nullptr;
  words(checkpoint)["ignore"] = nullptr;
  checkpoint.remove("lm_head.weight");
  checkpoint.config()["tie_word_embeddings"] = true;
  checkpoint.write(folder.path());
  EXPECT_EQ(count_stored(planned(folder.path())), (Stored{14, 1}));

  TinyCheckpoint block = tiny_model(m0_block());
  words(block)["modules_to_not_convert"] = nullptr;
  const TinyFolder other;
  block.write(other.path());
  EXPECT_EQ(count_stored(planned(other.path())), (Stored{14, 1}));
}

TEST(CaseA14, GroupNamesAreFreeText) {
  const TinyFolder folder;
  TinyModel model = m0_channel();
  model.quant_of = [](std::string_view module) {
    return module.ends_with("down_proj") ? std::optional(tiny_fp8_static(DType::F32))
                                         : std::nullopt;
  };
  TinyCheckpoint checkpoint = tiny_model(model);
  const json groups = words(checkpoint)["config_groups"];
  words(checkpoint)["config_groups"] = {{"FP8_DYNAMIC", groups["group_0"]},
                                        {"the other one!", groups["group_1"]}};
  checkpoint.write(folder.path());
  EXPECT_EQ(count_stored(planned(folder.path())), (Stored{14, 1}));
  expect_reference(folder.path(), checkpoint, model);
}

TEST(CaseA15, AQuantisedHeadIsRunAsQuantised) {
  const TinyFolder folder;
  TinyModel model = m0_channel();
  model.quant_of = [](std::string_view module) {
    return module == "lm_head" ? std::optional(tiny_fp8_dynamic(DType::F32)) : std::nullopt;
  };
  TinyCheckpoint checkpoint = tiny_model(model);
  group_0(checkpoint)["targets"] = {"Linear", "re:.*lm_head"};
  words(checkpoint)["ignore"] = json::array();
  checkpoint.write(folder.path());
  EXPECT_EQ(count_stored(planned(folder.path())), (Stored{15, 0}));
  expect_reference(folder.path(), checkpoint, model);
}

TEST(CaseA16, IgnoreEntriesOfAnInnerLeafLeaveTheLayerAsItIsStored) {
  const TinyFolder folder;
  const TinyModel model = with_plain(m0_channel(), [](std::string_view module) {
    return is_in_layer(module, 0) &&
           (module.ends_with("q_proj") || module.ends_with("k_proj") || module.ends_with("v_proj"));
  });
  TinyCheckpoint checkpoint = tiny_model(model);
  words(checkpoint)["ignore"] = {"lm_head", "model.layers.0.self_attn.q_proj.linear",
                                 "model.layers.0.self_attn.k_proj.linear",
                                 "model.layers.0.self_attn.v_proj.linear"};
  checkpoint.write(folder.path());
  EXPECT_EQ(count_stored(planned(folder.path())), (Stored{11, 4}));
  expect_reference(folder.path(), checkpoint, model);
}

TEST(CaseA17, APrefixedHeadNeedsAnEntryThatReachesIt) {
  const TinyModel model = m0_channel();
  const TinyCheckpoint reference = tiny_model(model);
  for (const char* entry : {"lm_head", "re:lm_head", "re:.*lm_head"}) {
    const TinyFolder folder;
    TinyCheckpoint checkpoint = tiny_model(model);
    words(checkpoint)["ignore"] = {entry};
    wrap(checkpoint, "language_model.model.", "language_model.lm_head");
    checkpoint.write(folder.path());
    if (std::string_view(entry) == "re:.*lm_head") {
      EXPECT_EQ(count_stored(planned(folder.path())), (Stored{14, 1}));
      expect_reference(folder.path(), reference, model);
    } else {
      EXPECT_THAT(refusal_of([&] { planned(folder.path()); }),
                  AllOf(HasSubstr("language_model.lm_head"), HasSubstr("ignore")))
          << entry;
    }
  }
}

TEST(CaseA18, ARegexWithoutAnEndCatchesEveryLayerThatBeginsLikeIt) {
  const TinyFolder folder;
  TinyModel model = with_plain(m0_channel(), [](std::string_view module) {
    return is_in_layer(module, 1) || is_in_layer(module, 10) || is_in_layer(module, 11);
  });
  model.layers = 12;
  TinyCheckpoint checkpoint = tiny_model(model);
  words(checkpoint)["ignore"] = {"lm_head", R"(re:model\.layers\.1)"};
  checkpoint.write(folder.path());
  EXPECT_EQ(count_stored(planned(folder.path())), (Stored{63, 22}));
}

TEST(CaseA19, SparseAndOddCasedWordsMeanWhatTheirLibraryMeans) {
  struct Form {
    json weights;
    LayerQuant quant;
  };
  const Form forms[] = {
      {{{"num_bits", 8}, {"type", "FLOAT"}}, tiny_fp8_weight_only(ScaleTile::tensor())},
      {{{"num_bits", 8}, {"type", "float"}, {"group_size", -1}}, tiny_fp8_weight_only()},
      {{{"num_bits", 8}, {"type", "float"}, {"strategy", "Block"}, {"block_structure", "128x128"}},
       tiny_fp8_weight_only(ScaleTile::block(128, 128))}};
  for (const Form& form : forms) {
    const TinyFolder folder;
    const TinyModel model = m0(form.quant);
    TinyCheckpoint checkpoint = tiny_model(model);
    group_0(checkpoint)["weights"] = form.weights;
    checkpoint.write(folder.path());
    EXPECT_EQ(quant_of(planned(folder.path()), "model.layers.0.mlp.up_proj").weight.tile,
              form.quant.weight.tile);
    expect_reference(folder.path(), checkpoint, model);
  }
  const TinyFolder folder;
  TinyCheckpoint checkpoint = tiny_model(m0_channel());
  group_0(checkpoint)["input_activations"]["dynamic"] = false;
  checkpoint.write(folder.path());
  EXPECT_THAT(refusal_of([&] { planned(folder.path()); }), HasSubstr("input_activations"));
}

}  // namespace
}  // namespace octet
