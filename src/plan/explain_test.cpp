#include "plan/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const Refusal kNoBlocks{RefusalCode::WeightScale, "weight scale block128x128 not in {tensor, row}"};
const Refusal kNoAvx512{RefusalCode::Feature, "needs avx512, which the device lacks"};
const Refusal kDisabled{RefusalCode::Disabled, "disabled by --disable"};

LinearKernel linear_kernel(std::string_view name, SchemeId scheme) {
  LinearKernel kernel{};
  kernel.name = name;
  kernel.device = DeviceKind::Cpu;
  kernel.scheme = scheme;
  return kernel;
}

// A hand-made plan: two layers of one model in block FP8, one chosen kernel, one that could also
// run by repeated scales, two that were refused; a norm with one kernel, an attention with none.
class ExplainTest : public ::testing::Test {
 protected:
  ExplainTest() {
    plan.request.model = "Tiny-FP8";
    plan.request.architecture = "LlamaForCausalLM";
    plan.request.layers = {{"model.layers.0.self_attn.q_proj", "model.layers.*.self_attn.q_proj"},
                           {"model.layers.1.self_attn.q_proj", "model.layers.*.self_attn.q_proj"},
                           {"lm_head", "lm_head"}};
    plan.dims.layers = 2;
    plan.device = {DeviceKind::Cpu, "test chip", {Feature::Avx2, Feature::F16c}, 34300000000, 4};
    plan.layers.push_back(block_layer());
    plan.layers.push_back(head());
    plan.ops.norm = {{{&norm, {}}, {&wide_norm, {kNoAvx512}}}, 0};
    plan.ops.attention = {{{&attention, {kNoAvx512, kDisabled}}}, std::nullopt};
    plan.ops.quantize = {{*plan.layers[0].quant.input, {{{&quantize, {}}}, 0}}};
    plan.budget = {1234567, 34567, 1000, 50000, 34300000000, 2048, 30000};
    plan.kv.dtype = DType::BF16;
    plan.notes = {"a note"};
  }

  PlannedLayers block_layer() const {
    PlannedLayers group;
    group.pattern = "model.layers.*.self_attn.q_proj";
    group.shape = {256, 384};
    group.quant.weight = {DType::F8E4M3, ScaleTile::block(128, 128), DType::BF16};
    group.quant.input =
        QuantSpec{DType::F8E4M3, ScaleTile::group(128), DType::F32, ScaleTiming::Dynamic};
    group.members = {0, 1};
    LinearProblem w8a8{SchemeId::W8A8, 256, 384, group.quant.weight, group.quant.input};
    LinearProblem finer{SchemeId::W8A16, 256, 384, group.quant.weight};
    finer.weight.tile = ScaleTile::group(128);
    group.resolution.attempts = {{&fast, false, w8a8, {kNoAvx512}},
                                 {&plain, false, w8a8, {}},
                                 {&repeating, true, finer, {}},
                                 {&rows_only, false, finer, {kNoBlocks, kDisabled}}};
    group.resolution.chosen = 1;
    return group;
  }

  PlannedLayers head() const {
    PlannedLayers group;
    group.pattern = "lm_head";
    group.shape = {512, 256};
    group.bias = true;
    group.forced = true;
    group.members = {2};
    group.resolution.attempts = {{&rows_only, false, {}, {kDisabled}}};
    return group;
  }

  const LinearKernel fast = linear_kernel("cpu.linear.w8a8.f8.avx512", SchemeId::W8A8);
  const LinearKernel plain = linear_kernel("cpu.linear.w8a8.f8.ref", SchemeId::W8A8);
  const LinearKernel repeating = linear_kernel("cpu.linear.w8a16.f8.groups", SchemeId::W8A16);
  const LinearKernel rows_only = linear_kernel("cpu.linear.w8a16.f8.rows", SchemeId::W8A16);
  const Kernel<RmsNorm> norm{"cpu.norm.ref", DeviceKind::Cpu, 10, {}, {}, nullptr, nullptr};
  const Kernel<RmsNorm> wide_norm{"cpu.norm.avx512", DeviceKind::Cpu, 210, {}, {},
                                  nullptr,           nullptr};
  const Kernel<Attention> attention{
      "cpu.attention.avx512", DeviceKind::Cpu, 210, {}, {}, nullptr, nullptr};
  const Kernel<Quantize> quantize{
      "cpu.quantize.ref", DeviceKind::Cpu, 10, {}, {}, nullptr, nullptr};
  ModelPlan plan;
};

TEST_F(ExplainTest, NamesTheModelAndTheDevice) {
  const std::string text = explain(plan);
  EXPECT_THAT(text, HasSubstr("Tiny-FP8: LlamaForCausalLM, 2 layers, 3 linear\n"));
  EXPECT_THAT(text, HasSubstr("device cpu \"test chip\" (4 threads, 34.3 GB; avx2, f16c)\n"));
  EXPECT_THAT(text, Not(HasSubstr("rank")));
  plan.options.ranks = 4;
  plan.options.rank = 3;
  EXPECT_THAT(explain(plan), HasSubstr("3 linear, rank 3 of 4\n"));
}

TEST_F(ExplainTest, ShowsWhatALayerStoresAndWhichKernelTakesItHow) {
  const std::string text = explain(plan);
  EXPECT_THAT(text, HasSubstr("model.layers.*.self_attn.q_proj  x2  N=256 K=384\n"));
  EXPECT_THAT(text, HasSubstr("    weights f8e4m3/block128x128/bf16/static, input "
                              "f8e4m3/group128/f32/dynamic\n"));
  EXPECT_THAT(text, HasSubstr("  * w8a8  cpu.linear.w8a8.f8.ref  takes f8e4m3 codes\n"));
  EXPECT_THAT(text, HasSubstr("lm_head  x1  N=512 K=256  bias  (--kernel)\n"
                              "    weights bf16, input unquantised\n"));
}

TEST_F(ExplainTest, ShowsTheOthersThatCouldRunAndEveryReasonAgainstTheRest) {
  const std::string text = explain(plan);
  EXPECT_THAT(text, HasSubstr("  + w8a16 cpu.linear.w8a16.f8.groups  (as group128)\n"));
  for (const Refusal& refusal : {kNoBlocks, kNoAvx512, kDisabled})
    EXPECT_THAT(text, HasSubstr("  - " + refusal.detail + "\n")) << refusal.detail;
  EXPECT_THAT(text, HasSubstr("cpu.linear.w8a8.f8.avx512\n"));
  EXPECT_THAT(text, HasSubstr("cpu.linear.w8a16.f8.rows\n"));
}

TEST_F(ExplainTest, GivesLayersWithTheSameDecisionOneBlock) {
  PlannedLayers other = block_layer();
  other.pattern = "model.layers.*.self_attn.o_proj";
  plan.layers.push_back(other);
  const std::string text = explain(plan);
  EXPECT_THAT(text, HasSubstr("model.layers.*.self_attn.q_proj  x2  N=256 K=384\n"
                              "model.layers.*.self_attn.o_proj  x2  N=256 K=384\n"
                              "    weights"));
  const size_t first = text.find("takes f8e4m3 codes");
  EXPECT_EQ(text.find("takes f8e4m3 codes", first + 1), std::string::npos);
}

TEST_F(ExplainTest, NamesTheKernelOfEveryOperationOrSaysNone) {
  const std::string text = explain(plan);
  EXPECT_THAT(text, HasSubstr("  norm                     cpu.norm.ref\n    - needs avx512"));
  EXPECT_THAT(text, HasSubstr("  attention                none\n"));
  EXPECT_THAT(text, HasSubstr("  input f8e4m3/group128/f32/dynamic cpu.quantize.ref\n"));
}

TEST_F(ExplainTest, AddsUpTheBytesAndEndsWithTheNotes) {
  const std::string text = explain(plan);
  EXPECT_THAT(text, HasSubstr("  weights                  1.23 MB (34.6 kB of it copied)\n"));
  EXPECT_THAT(text,
              HasSubstr("  KV                       1.00 kB a token (bf16), 2.05 MB for 2048"));
  EXPECT_THAT(text, HasSubstr("34.3 GB; 30000 tokens of context fit\n"));
  EXPECT_TRUE(text.ends_with("\nnotes\n  a note\n"));
  plan.notes.clear();
  EXPECT_THAT(explain(plan), Not(HasSubstr("notes")));
}

TEST_F(ExplainTest, ShowsNoControlCharactersOfACheckpoint) {
  plan.request.model = "evil\x1b[31m";
  plan.notes = {"tensor \x07 is not used"};
  EXPECT_THAT(explain(plan), AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\x07"))));
}

TEST_F(ExplainTest, JsonHasTheSameDecisions) {
  const json data = json::parse(to_json(plan));
  EXPECT_EQ(data["model"], "Tiny-FP8");
  EXPECT_EQ(data["device"]["features"], (json{"avx2", "f16c"}));
  EXPECT_EQ(data["dtype"], "auto");
  EXPECT_EQ(data["kv_dtype"], "bf16");
  const json& q = data["linear"][0];
  EXPECT_EQ(q["layers"], "model.layers.*.self_attn.q_proj");
  EXPECT_EQ(q["count"], 2);
  EXPECT_EQ(q["modules"],
            (json{"model.layers.0.self_attn.q_proj", "model.layers.1.self_attn.q_proj"}));
  EXPECT_EQ(q["n"], 256);
  EXPECT_EQ(q["k"], 384);
  EXPECT_EQ(q["weight"], "f8e4m3/block128x128/bf16/static");
  EXPECT_EQ(q["input"], "f8e4m3/group128/f32/dynamic");
  EXPECT_EQ(q["scheme"], "w8a8");
  EXPECT_EQ(q["kernel"], "cpu.linear.w8a8.f8.ref");
  ASSERT_EQ(q["attempts"].size(), 4U);
  EXPECT_EQ(q["attempts"][0]["refusals"], (json{kNoAvx512.detail}));
  EXPECT_EQ(q["attempts"][1]["refusals"], json::array());
  EXPECT_EQ(q["attempts"][2]["refined"], true);
  EXPECT_EQ(q["attempts"][3]["refusals"], (json{kNoBlocks.detail, kDisabled.detail}));
}

TEST_F(ExplainTest, JsonSaysNullWhereNothingRuns) {
  const json data = json::parse(to_json(plan));
  const json& head = data["linear"][1];
  EXPECT_TRUE(head["kernel"].is_null());
  EXPECT_TRUE(head["scheme"].is_null());
  EXPECT_TRUE(head["input"].is_null());
  EXPECT_EQ(head["forced"], true);
  EXPECT_EQ(head["bias"], true);
  for (const json& op : data["operations"]) {
    if (op["op"] != "attention") continue;
    EXPECT_TRUE(op["kernel"].is_null());
    EXPECT_EQ(op["attempts"][0]["refusals"], (json{kNoAvx512.detail, kDisabled.detail}));
  }
}

TEST_F(ExplainTest, JsonIsRunnableWithoutFailuresOnly) {
  EXPECT_EQ(json::parse(to_json(plan))["runnable"], true);
  plan.failures = {"no kernel for attention"};
  const json data = json::parse(to_json(plan));
  EXPECT_EQ(data["runnable"], false);
  EXPECT_EQ(data["failures"], (json{"no kernel for attention"}));
}

TEST_F(ExplainTest, JsonCountsBytesAsNumbers) {
  const json data = json::parse(to_json(plan));
  EXPECT_EQ(data["bytes"], (json{{"weights", 1234567},
                                 {"copied", 34567},
                                 {"kv_per_token", 1000},
                                 {"kv", 2048000},
                                 {"scratch", 50000},
                                 {"device", 34300000000}}));
  EXPECT_EQ(data["max_model_len"], 2048);
  EXPECT_EQ(data["fits_tokens"], 30000);
}

TEST_F(ExplainTest, JsonStaysJsonWithNamesThatAreNotUtf8) {
  plan.request.model = "caf\xe9";
  plan.notes = {"\xff"};
  EXPECT_EQ(json::parse(to_json(plan))["model"], "caf\xef\xbf\xbd");
}

TEST(HumanBytes, HaveThreeDigitsAndDecimalUnits) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1000), "1.00 kB");
  EXPECT_EQ(human_bytes(9994), "9.99 kB");
  EXPECT_EQ(human_bytes(9996), "10.0 kB");
  EXPECT_EQ(human_bytes(99960), "100 kB");
  EXPECT_EQ(human_bytes(812345), "812 kB");
  EXPECT_EQ(human_bytes(999600), "1.00 MB");
  EXPECT_EQ(human_bytes(34'300'000'000), "34.3 GB");
  EXPECT_EQ(human_bytes(5'000'000'000'000'000), "5000 TB");
}

}  // namespace
}  // namespace octet
