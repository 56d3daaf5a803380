// Section J of the cases, as far as experts are not computed: every layout of them is recognised
// and refused by name. Microscaling scales are computed.
#include <gmock/gmock.h>

#include "num/f8.h"
#include "tests/cases/case_model.h"
#include "tests/integration/process.h"
#include "tests/integration/rank_rig.h"
#include "tests/integration/rig.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

// A model whose config says that it has experts, in the word that its writer uses.
TinyCheckpoint with_experts(const char* key, int experts = 4) {
  TinyCheckpoint checkpoint = tiny_model(m0_channel());
  for (int layer = 0; layer < 2; ++layer) {
    for (const char* part : {"gate_proj", "up_proj", "down_proj"}) {
      const std::string module = fmt::format("model.layers.{}.mlp.{}", layer, part);
      checkpoint.remove(module + ".weight");
      checkpoint.remove(module + ".weight_scale");
    }
    checkpoint.add_normal(fmt::format("model.layers.{}.mlp.gate.weight", layer), DType::BF16,
                          {experts, 256}, 0.1F);
  }
  checkpoint.config()[key] = experts;
  checkpoint.config()["num_experts_per_tok"] = 2;
  return checkpoint;
}

void add_stacked(TinyCheckpoint& checkpoint, bool scales) {
  for (int layer = 0; layer < 2; ++layer) {
    const std::string experts = fmt::format("model.layers.{}.mlp.experts.", layer);
    checkpoint.add(experts + "gate_up_proj.weight", DType::F8E4M3, {4, 384, 256},
                   std::vector<std::byte>(size_t{4} * 384 * 256, std::byte{0x30}));
    if (!scales) continue;
    const std::vector<float> ones(size_t{4} * 384, 1.0F);
    checkpoint.add_values(experts + "gate_up_proj.weight_scale", DType::F32, {4, 384, 1}, ones);
  }
}

void add_single(TinyCheckpoint& checkpoint, const LayerQuant& quant, int experts = 4) {
  for (int layer = 0; layer < 2; ++layer) {
    for (int e = 0; e < experts; ++e) {
      const std::string expert = fmt::format("model.layers.{}.mlp.experts.{}.", layer, e);
      checkpoint.add_linear(expert + "gate_proj", 192, 256, quant);
      checkpoint.add_linear(expert + "up_proj", 192, 256, quant);
      checkpoint.add_linear(expert + "down_proj", 256, 192, quant);
    }
  }
}

void expect_refused(const TinyCheckpoint& checkpoint) {
  const TinyFolder folder;
  checkpoint.write(folder.path());
  EXPECT_THAT(planned(folder.path()).plan.failures,
              Contains(AllOf(HasSubstr("model.layers.1.mlp.experts"), HasSubstr("not computed"))));
  EXPECT_EQ(run_octet({"plan", folder.path().string()}).status, 3);
}

TEST(CaseJ02, ExponentsOfMicroscalingScalesAreByteMinus127) {
  EXPECT_EQ(f8e8m0_to_f32(118), 0x1p-9F);
  EXPECT_EQ(f8e8m0_to_f32(119), 0x1p-8F);
  EXPECT_EQ(f8e8m0_to_f32(127), 1.0F);
  const TinyFolder folder;
  const TinyModel model = m0(tiny_mxfp8());
  tiny_model(model).write(folder.path());
  EXPECT_TRUE(planned(folder.path()).plan.failures.empty());
}

TEST(CaseJ03, MicroscalingGroupsAreSharedByRanks) {
  TinyModel model = m0(tiny_mxfp8());
  const TinyFolder folder;
  tiny_model(model).write(folder.path());
  const std::vector<int32_t> ids = some_ids(6);
  EXPECT_LT(largest_difference(run_ranks(folder.path(), ids, 2, SchemeId::W8A16),
                               run_alone(folder.path(), ids, SchemeId::W8A16)),
            1e-4);
}

TEST(CaseJ04, RoutersOfExpertsAreRefusedWithThem) {
  TinyCheckpoint checkpoint = with_experts("num_experts");
  add_single(checkpoint, tiny_fp8_dynamic(DType::F32));
  expect_refused(checkpoint);
}

TEST(CaseJ05, UnnormalisedRoutersAreRefusedAsAllExpertsAre) {
  TinyCheckpoint checkpoint = with_experts("num_experts");
  checkpoint.config()["norm_topk_prob"] = false;
  checkpoint.config()["routed_scaling_factor"] = 2.5;
  add_single(checkpoint, tiny_fp8_dynamic(DType::F32));
  expect_refused(checkpoint);
}

TEST(CaseJ06, EightExpertsOfWhichTwoRunAreRefused) {
  TinyCheckpoint checkpoint = with_experts("num_local_experts", 8);
  add_single(checkpoint, tiny_fp8_dynamic(DType::F32), 8);
  expect_refused(checkpoint);
}

TEST(CaseJ07, ExpertsOfDeepSeeksWordAreRefused) {
  TinyCheckpoint checkpoint = with_experts("n_routed_experts");
  add_single(checkpoint, tiny_fp8_block(128, 128, DType::F32));
  expect_refused(checkpoint);
}

TEST(CaseJ08, StackedExpertsWithScalesAreRefused) {
  TinyCheckpoint checkpoint = with_experts("num_experts");
  add_stacked(checkpoint, true);
  expect_refused(checkpoint);
}

TEST(CaseJ09, ExpertsWithStaticInputsAreRefused) {
  TinyCheckpoint checkpoint = with_experts("num_local_experts");
  add_single(checkpoint, tiny_fp8_static(DType::F32));
  expect_refused(checkpoint);
}

TEST(CaseJ10, StackedExpertsWithoutScalesAreRefused) {
  TinyCheckpoint checkpoint = with_experts("num_experts");
  add_stacked(checkpoint, false);
  expect_refused(checkpoint);
}

TEST(CaseJ11, ARefusedModelComputesNoToken) {
  const TinyFolder folder;
  TinyCheckpoint checkpoint = with_experts("num_experts");
  add_single(checkpoint, tiny_fp8_dynamic(DType::F32));
  checkpoint.write(folder.path());
  const Ran ran = run_octet({"run", folder.path().string(), "--prompt-ids", "1", "-n", "1"});
  EXPECT_EQ(ran.status, 3);
  EXPECT_THAT(ran.err, HasSubstr("experts"));
}

TEST(CaseJ12, TheRoutersWeightStaysWhatTheFileSays) {
  TinyCheckpoint checkpoint = with_experts("num_experts");
  add_single(checkpoint, tiny_fp8_dynamic(DType::F32));
  const TinyFolder folder;
  checkpoint.write(folder.path());
  const Checkpoint opened = Checkpoint::open(folder.path());
  EXPECT_EQ(opened.find("model.layers.0.mlp.gate.weight")->dtype, DType::BF16);
  expect_refused(checkpoint);
}

}  // namespace
}  // namespace octet
