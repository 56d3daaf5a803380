// Section C of the cases: which kernel runs a layer, and what is said when none can.
#include <gmock/gmock.h>

#include <set>

#include "tests/cases/case_model.h"
#include "tests/integration/process.h"
#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The plan of the program as data, with its exit status.
struct PlanOutput {
  int status;
  json data;
  std::string err;
};
PlanOutput plan_of(const std::filesystem::path& dir, std::vector<std::string> flags = {}) {
  std::vector<std::string> words{"plan", dir.string(), "--json"};
  words.insert(words.end(), flags.begin(), flags.end());
  const Ran ran = run_octet(words);
  return {ran.status, ran.out.empty() ? json() : json::parse(ran.out), ran.err};
}

// The kernels of the quantised layers of a plan.
std::set<std::string> kernels_of(const json& plan) {
  std::set<std::string> names;
  for (const json& layer : plan["linear"]) {
    if (layer["layers"] != "lm_head" && layer["kernel"].is_string())
      names.insert(layer["kernel"].get<std::string>());
  }
  return names;
}

TEST(CaseC01, ABlockQuantisedModelStartsWithABlockKernelInEveryLayer) {
  const TinyFolder folder;
  const TinyModel model = m0_ct_block();
  const TinyCheckpoint checkpoint = tiny_model(model);
  checkpoint.write(folder.path());
  const Prepared prepared = planned(folder.path());
  ASSERT_TRUE(prepared.plan.failures.empty());
  int layers = 0;
  for (size_t i = 0; i < prepared.records.size(); ++i) {
    if (!is_f8(prepared.records[i].quant.weight.dtype)) continue;
    ++layers;
    const Resolution& resolution = prepared.plan.layers[prepared.plan.layer_group[i]].resolution;
    EXPECT_EQ(resolution.problem().scheme, SchemeId::W8A8);
    EXPECT_TRUE(resolution.kernel()->caps.weight_scales.has(Granularity::Block))
        << resolution.kernel()->name;
  }
  EXPECT_EQ(layers, 14);
  expect_reference(folder.path(), checkpoint, model);
}

TEST(CaseC02, AForcedKernelThatCannotIsNamedWithItsReasonAtTheStart) {
  const TinyFolder folder;
  tiny_model(m0_ct_block()).write(folder.path());
  // The reference of weights of two bytes takes no codes: nothing is bound.
  const PlanOutput unbound =
      plan_of(folder.path(), {"--kernel", "self_attn=cpu.linear.plain.float.ref"});
  EXPECT_EQ(unbound.status, 2);
  // A W8A8 kernel of another instruction set binds the layers and cannot run them.
  const PlanOutput bound =
      plan_of(folder.path(), {"--max-isa", "avx2", "--kernel", "cpu.linear.w8a8.f8.avx512bf16"});
  EXPECT_EQ(bound.status, 3);
  EXPECT_THAT(bound.err, AllOf(HasSubstr("model.layers.*.self_attn.q_proj"),
                               HasSubstr("cpu.linear.w8a8.f8.avx512bf16"), HasSubstr("needs")));
}

TEST(CaseC03, EveryBlockSizeIsServed) {
  for (const auto& [rows, cols] :
       {std::pair{64, 64}, std::pair{128, 64}, std::pair{1, 128}, std::pair{32, 32}}) {
    TinyModel model = m0(tiny_fp8_block(rows, cols, DType::F32));
    const TinyFolder folder;
    const TinyCheckpoint checkpoint = tiny_model(model);
    checkpoint.write(folder.path());
    SCOPED_TRACE(fmt::format("{}x{}", rows, cols));
    expect_reference(folder.path(), checkpoint, model);
  }
}

TEST(CaseC08, ChannelWeightsWithAStaticTensorInputAreServed) {
  LayerQuant quant = tiny_fp8_dynamic(DType::F32);
  quant.input = tiny_fp8_static(DType::F32).input;
  const TinyModel model = m0(quant);
  const TinyFolder folder;
  const TinyCheckpoint checkpoint = tiny_model(model);
  checkpoint.write(folder.path());
  expect_reference(folder.path(), checkpoint, model);
}

TEST(CaseC09, AModelInEightBitsRunsWithoutUnitsForThem) {
  const TinyFolder folder;
  write_small_model(folder.path());
  for (const char* isa : {"baseline", "avx2"}) {
    const std::vector<std::string> words{"run", folder.path().string(), "-p", "hello",     "-n",
                                         "4",   "--temperature",        "0",  "--max-isa", isa};
    const Ran ran = run_octet(words);
    EXPECT_EQ(ran.status, 0) << describe_run(words, ran);
    const std::set<std::string> kernels =
        kernels_of(plan_of(folder.path(), {"--max-isa", isa}).data);
    for (const std::string& kernel : kernels)
      EXPECT_EQ(kernel.find("avx512"), std::string::npos) << kernel;
  }
}

TEST(CaseC10, ASliceOfAGpuIsNoDeviceOfThisProgram) {
  const TinyFolder folder;
  write_small_model(folder.path());
  const PlanOutput plan = plan_of(folder.path(), {"--device", "cuda:0"});
  EXPECT_EQ(plan.status, 2);
  EXPECT_THAT(plan.err, AllOf(HasSubstr("cuda:0"), HasSubstr("cpu")));
}

TEST(CaseC11, BothDialectsChooseTheSameKernels) {
  TinyModel model = m0_channel();
  const TinyFolder folder;
  tiny_model(model).write(folder.path() / "ct");
  model.dialect = TinyDialect::Fp8;
  tiny_model(model).write(folder.path() / "fp8");
  const std::set<std::string> kernels = kernels_of(plan_of(folder.path() / "ct").data);
  EXPECT_EQ(kernels, kernels_of(plan_of(folder.path() / "fp8").data));
  EXPECT_EQ(kernels.size(), 1U);
}

TEST(CaseC12, SmallMicroscalingLayersAreServedAndPartialGroupsRefusedByName) {
  for (const int64_t n : {32, 96, 128}) {
    for (const int64_t k : {32, 64, 96}) {
      TinyModel model = m0(tiny_mxfp8());
      model.hidden = k;
      model.heads = model.kv_heads = 2;
      model.head_dim = n / 2;
      model.intermediate = n;
      const TinyFolder folder;
      tiny_model(model).write(folder.path());
      EXPECT_TRUE(planned(folder.path()).plan.failures.empty()) << n << " " << k;
    }
  }
  TinyModel model = m0(tiny_mxfp8());
  model.hidden = 80;
  const TinyFolder folder;
  tiny_model(model).write(folder.path());
  EXPECT_THAT(refusal_of([&] { planned(folder.path()); }),
              AllOf(HasSubstr("K=80"), HasSubstr("multiple of 32")));
}

TEST(CaseC14, AForcedKernelBindsTheLayersWhoseWeightsItTakes) {
  TinyModel model = m0_channel();
  model.quant_of = [](std::string_view module) -> std::optional<LayerQuant> {
    if (module == "lm_head") return tiny_plain();
    if (module.find("mlp") != std::string_view::npos) return tiny_fp8_block(128, 128, DType::F32);
    if (module.ends_with("o_proj")) return tiny_mxfp8();
    return std::nullopt;
  };
  const TinyFolder folder;
  tiny_model(model).write(folder.path());
  const PlanOutput plan = plan_of(folder.path(), {"--kernel", "cpu.linear.w8a16.f8.ref"});
  // Whatever the outcome, it is said per layer: bound ones are marked, the head is as usual.
  int forced = 0;
  for (const json& layer : plan.data["linear"]) {
    forced += layer["forced"].get<bool>() ? 1 : 0;
    EXPECT_FALSE(layer["layers"] == "lm_head" && layer["forced"].get<bool>());
  }
  EXPECT_GE(forced, 3);
  EXPECT_EQ(plan_of(folder.path(), {"--kernel", "lm_head=cpu.linear.w8a16.f8.ref"}).status, 2);
}

}  // namespace
}  // namespace octet
