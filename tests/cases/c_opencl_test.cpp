// Section C of the cases on profiles of Intel GPUs: which OpenCL kernel runs a layer, and what is
// said when none can. No device is opened.
#include <gmock/gmock.h>

#include <map>

#include "tests/cases/case_model.h"
#include "tests/integration/process.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kGpus[] = {"b580", "b60", "a770", "max1550"};

struct PlanOutput {
  int status;
  json data;
  std::string err;
};
PlanOutput plan_on(const std::string& gpu, const std::filesystem::path& dir,
                   const std::vector<std::string>& flags = {}) {
  std::vector<std::string> words{"plan", dir.string(), "--json", "--device",
                                 "profiles/" + gpu + ".json"};
  words.insert(words.end(), flags.begin(), flags.end());
  const Ran ran = run_octet(words);
  return {ran.status, ran.out.empty() ? json() : json::parse(ran.out), ran.err};
}

// The kernels of a plan by module; "none" where there is none.
std::map<std::string, std::string> kernels_by_module(const json& plan) {
  std::map<std::string, std::string> kernels;
  for (const json& group : plan["linear"]) {
    for (const std::string module : group["modules"])
      kernels[module] = group["kernel"].is_string() ? group["kernel"].get<std::string>() : "none";
  }
  return kernels;
}

std::filesystem::path write(const TinyFolder& folder, const char* name, const TinyModel& model) {
  return tiny_model(model).write(folder.path() / name);
}

// A mixed model: blocks in the MLP, microscaling in o_proj, channels elsewhere.
TinyModel mixed() {
  TinyModel model = m0_channel();
  model.quant_of = [](std::string_view module) -> std::optional<LayerQuant> {
    if (module == "lm_head") return tiny_plain();
    if (module.find("mlp") != std::string_view::npos) return tiny_fp8_block(128, 128, DType::F32);
    if (module.ends_with("o_proj")) return tiny_mxfp8();
    return std::nullopt;
  };
  return model;
}

// A kernel of the program for weights with one scale per tensor or row alone.
constexpr const char* kRows = "opencl.linear.w8a16.f8.subgroup";

TEST(CaseC01, OnIntelGpusABlockModelHasABlockKernelInAll14Layers) {
  const TinyFolder folder;
  const auto dir = write(folder, "model", m0_ct_block());
  for (const char* gpu : kGpus) {
    const PlanOutput plan = plan_on(gpu, dir);
    EXPECT_EQ(plan.status, 0) << plan.err;
    int layers = 0;
    for (const auto& [module, kernel] : kernels_by_module(plan.data)) {
      if (module == "lm_head") continue;
      ++layers;
      EXPECT_THAT(kernel, HasSubstr("opencl.linear.w8a8.f8_block.")) << module;
    }
    EXPECT_EQ(layers, 14);
  }
}

TEST(CaseC02, OnIntelGpusAForcedKernelForRowsIsNamedWithTheBlocksItDoesNotTake) {
  const TinyFolder folder;
  const auto dir = write(folder, "model", m0_ct_block());
  for (const char* gpu : kGpus) {
    const PlanOutput plan = plan_on(gpu, dir, {"--kernel", kRows});
    EXPECT_EQ(plan.status, 3);
    EXPECT_THAT(plan.err, AllOf(HasSubstr("model.layers.*.self_attn.q_proj"), HasSubstr(kRows),
                                HasSubstr("block128x128 not in {tensor, row}")));
  }
}

TEST(CaseC03, OnIntelGpusEveryBlockSizeHasAKernel) {
  for (const auto& [rows, cols] :
       {std::pair{64, 64}, std::pair{128, 64}, std::pair{1, 128}, std::pair{32, 32}}) {
    const TinyFolder folder;
    const auto dir = write(folder, "model", m0(tiny_fp8_block(rows, cols, DType::F32)));
    for (const char* gpu : kGpus)
      EXPECT_EQ(plan_on(gpu, dir).status, 0) << gpu << " " << rows << "x" << cols;
  }
}

TEST(CaseC06, OnIntelGpusTensorLayersTakeAKernelThatDeclaresTensorScales) {
  const TinyFolder folder;
  const auto dir = write(folder, "model", m0_tensor());
  for (const char* gpu : kGpus) {
    const json plan = plan_on(gpu, dir).data;
    for (const json& group : plan["linear"]) {
      if (group["layers"] == "lm_head") continue;
      EXPECT_THAT(group["weight"].get<std::string>(), HasSubstr("/tensor/"));
      for (const json& attempt : group["attempts"]) {
        if (attempt["kernel"] != group["kernel"]) continue;
        EXPECT_FALSE(attempt["refined"].get<bool>()) << group["kernel"];
      }
    }
  }
}

TEST(CaseC08, OnIntelGpusChannelWeightsWithAStaticInputAreServedInBothSchemes) {
  LayerQuant quant = tiny_fp8_dynamic(DType::F32);
  quant.input = tiny_fp8_static(DType::F32).input;
  const TinyFolder folder;
  const auto dir = write(folder, "model", m0(quant));
  for (const char* gpu : kGpus) {
    EXPECT_EQ(plan_on(gpu, dir).status, 0);
    EXPECT_EQ(plan_on(gpu, dir, {"--linear-backend", "xpu"}).status, 0);
  }
}

TEST(CaseC11, OnIntelGpusBothDialectsChooseTheSameKernels) {
  TinyModel model = m0_channel();
  const TinyFolder folder;
  const auto ct = write(folder, "ct", model);
  model.dialect = TinyDialect::Fp8;
  const auto fp8 = write(folder, "fp8", model);
  for (const char* gpu : kGpus) {
    EXPECT_EQ(kernels_by_module(plan_on(gpu, ct).data), kernels_by_module(plan_on(gpu, fp8).data));
  }
}

TEST(CaseC12, OnIntelGpusSmallMicroscalingLayersAreServed) {
  for (const int64_t n : {32, 96, 128}) {
    for (const int64_t k : {32, 64, 96}) {
      TinyModel model = m0(tiny_mxfp8());
      model.hidden = k;
      model.heads = model.kv_heads = 2;
      model.head_dim = n / 2;
      model.intermediate = n;
      const TinyFolder folder;
      EXPECT_EQ(plan_on("b580", write(folder, "model", model)).status, 0) << n << " " << k;
    }
  }
  TinyModel model = m0(tiny_mxfp8());
  model.hidden = 80;
  const TinyFolder folder;
  EXPECT_THAT(plan_on("b580", write(folder, "model", model)).err,
              AllOf(HasSubstr("K=80"), HasSubstr("multiple of 32")));
}

TEST(CaseC14, OnIntelGpusAForcedKernelBindsWhatItTakesAndRefusesBoundLayersItCannotRun) {
  const TinyFolder folder;
  const auto dir = write(folder, "model", mixed());
  // Every 8-bit layer is bound by its stored dtype; those with blocks and groups cannot run.
  const PlanOutput all = plan_on("b580", dir, {"--kernel", kRows});
  EXPECT_EQ(all.status, 3);
  EXPECT_THAT(all.err, AllOf(HasSubstr("block128x128 not in {tensor, row}"),
                             HasSubstr("group32 not in {tensor, row}")));
  for (const json& group : all.data["linear"])
    EXPECT_EQ(group["forced"], group["layers"] != "lm_head") << group["layers"];
  // The layers with channels alone: the rest is resolved as usual, and all is served.
  const PlanOutput some = plan_on("b580", dir, {"--kernel", std::string("[qkv]_proj=") + kRows});
  EXPECT_EQ(some.status, 0) << some.err;
  for (const json& group : some.data["linear"]) {
    const std::string layers = group["layers"];
    const bool bound =
        layers.ends_with("q_proj") || layers.ends_with("k_proj") || layers.ends_with("v_proj");
    EXPECT_EQ(group["forced"], bound) << layers;
    EXPECT_EQ(group["kernel"] == kRows, bound) << layers;
  }
  EXPECT_EQ(plan_on("b580", dir, {"--kernel", std::string("lm_head=") + kRows}).status, 2);
}

TEST(CaseC14, OnIntelGpusABackendServesEveryKindOfLayerOrNamesIt) {
  const TinyFolder folder;
  const auto dir = write(folder, "model", mixed());
  for (const char* gpu : kGpus) {
    for (const char* backend : {"xpu", "xpu_woq", "torch", "reference"}) {
      const PlanOutput plan = plan_on(gpu, dir, {"--linear-backend", backend});
      EXPECT_EQ(plan.status, 0) << gpu << " " << backend << "\n" << plan.err;
    }
  }
}

}  // namespace
}  // namespace octet
