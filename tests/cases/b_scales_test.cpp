// Section B of the cases: scales, their shapes and types, partial blocks, and 8-bit arithmetic.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "num/f8.h"
#include "tests/cases/case_model.h"
#include "tests/integration/process.h"
#include "tests/integration/rank_rig.h"
#include "tests/integration/rig.h"
#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Rows = std::vector<std::vector<float>>;

// Scales that are powers of two, so that every product of code and scale is exact.
std::vector<float> powers_of_two(size_t count, uint64_t seed) {
  TinyRandom random(seed);
  std::vector<float> scales;
  for (size_t i = 0; i < count; ++i)
    scales.push_back(std::ldexp(1.0F, -6 - static_cast<int>(random.bits() % 6)));
  return scales;
}

// The one linear kernel the plan chose for `module`, run on one-hot rows: the decoded weight.
std::vector<float> decoded(const Prepared& prepared, size_t index) {
  const QuantView& view = prepared.records[index].view;
  std::vector<float> values;
  for (int64_t n = 0; n < view.n(); ++n) {
    for (int64_t k = 0; k < view.k(); ++k) {
      const int64_t scale =
          view.spec.tile.tile_row(n) * view.scales.row_stride + view.spec.tile.tile_col(k);
      values.push_back(element(view.codes, n * view.codes.row_stride + k) *
                       element(view.scales, scale));
    }
  }
  return values;
}

TEST(CaseB01, APartialLastBlockHasItsOwnScale) {
  // hidden 300 and 200 rows: weight [200, 300] in blocks of 128 has a grid of [2, 3].
  TinyModel model = m0(tiny_fp8_weight_only(ScaleTile::block(128, 128), DType::F32));
  model.hidden = 300;
  model.heads = 2;
  model.kv_heads = 2;
  model.head_dim = 100;
  model.layers = 1;
  TinyCheckpoint checkpoint = tiny_model(model);
  const std::string q = "model.layers.0.self_attn.q_proj";
  checkpoint.remove(q + ".weight_scale");
  checkpoint.remove(q + ".weight");
  checkpoint.add(q + ".weight", DType::F8E4M3, {200, 300},
                 std::vector<std::byte>(size_t{200} * 300, std::byte{0x38}));  // 1.0
  const float scales[] = {1, 2, 4, 8, 16, 32};
  checkpoint.add_values(q + ".weight_scale", DType::F32, {2, 3}, scales);
  const TinyFolder folder;
  checkpoint.write(folder.path());
  const Prepared prepared = planned(folder.path());
  const std::vector<float> weight = decoded(prepared, 0);
  const auto at = [&](int64_t n, int64_t k) { return weight[static_cast<size_t>(n * 300 + k)]; };
  EXPECT_EQ(at(127, 0), 1);
  EXPECT_EQ(at(128, 0), 8);
  EXPECT_EQ(at(0, 255), 2);
  EXPECT_EQ(at(0, 256), 4);
  EXPECT_EQ(at(199, 299), 32);

  // The kernel agrees, bit for bit: each output is one product of powers of two.
  const auto device = make_cpu_device(prepared.plan.device, 2);
  const Resolution& resolution = prepared.plan.layers[prepared.plan.layer_group[0]].resolution;
  const auto stream = device->make_stream();
  const PackedWeight packed =
      resolution.kernel()->pack(prepared.records[0].view, resolution.problem(), *device, *stream);
  Buffer scratch = device->allocate(resolution.kernel()->scratch_bytes == nullptr
                                        ? 64
                                        : resolution.kernel()->scratch_bytes(packed.problem, 1, 2));
  for (const int64_t k : {0, 127, 128, 255, 256, 299}) {
    std::vector<float> x(300);
    std::vector<float> y(200);
    x[static_cast<size_t>(k)] = 1;
    launch(*resolution.kernel(),
           LinearArgs{&packed, 1, {x.data(), 300, nullptr}, y.data(), 200, scratch.data()},
           *stream);
    for (int64_t n = 0; n < 200; ++n)
      ASSERT_EQ(y[static_cast<size_t>(n)], at(n, k)) << n << " " << k;
  }
}

TEST(CaseB03, ARankMayCutThroughABlock) {
  // Rank 1 of 2 owns columns 192 to 383 of down_proj: half of scale column 1 and all of column 2.
  const TinyFolder folder;
  tiny_model(m0_block()).write(folder.path());
  const std::vector<int32_t> ids = some_ids(6);
  // As weights, so that no input scale is cut: the same sums in another order.
  EXPECT_LT(largest_difference(run_ranks(folder.path(), ids, 2, SchemeId::W8A16),
                               run_alone(folder.path(), ids, SchemeId::W8A16)),
            1e-4);
}

TEST(CaseB05, AnInterleavedFusedLayoutIsRefusedByItsArchitecture) {
  const TinyFolder folder;
  TinyCheckpoint checkpoint = tiny_model(m0_block());
  checkpoint.config()["architectures"] = {"InternLM2ForCausalLM"};
  checkpoint.config()["model_type"] = "internlm2";
  checkpoint.write(folder.path());
  EXPECT_THAT(refusal_of([&] { planned(folder.path()); }, Code::CannotRun),
              AllOf(HasSubstr("InternLM2ForCausalLM"), HasSubstr("LlamaForCausalLM")));
}

// A Phi-3 model whose fused matrices are quantised as one, and the reference of its parts.
struct Fused {
  TinyModel model;
  TinyCheckpoint stored;
  TinyCheckpoint reference;
};

// Splits `count` values per row of a fused matrix to the names of its parts.
void add_parts(const TinyCheckpoint& stored, const std::string& fused, int64_t k,
               const std::vector<std::pair<std::string, int64_t>>& parts,
               TinyCheckpoint& reference) {
  const std::vector<double>& values = stored.values(fused + ".weight");
  size_t begin = 0;
  for (const auto& [name, rows] : parts) {
    const size_t count = static_cast<size_t>(rows * k);
    std::vector<float> part(values.begin() + static_cast<int64_t>(begin),
                            values.begin() + static_cast<int64_t>(begin + count));
    reference.remove(name + ".weight");
    reference.add_values(name + ".weight", DType::F32, {rows, k}, part);
    begin += count;
  }
}

Fused fused_model(LayerQuant quant) {
  Fused fused{m0(quant), TinyCheckpoint(5), tiny_model(m0(quant))};
  // q 232 rows and k, v 116 each: no edge of a part is an edge of a block of 128.
  TinyModel& model = fused.model;
  model.head_dim = 58;
  fused.stored = tiny_model(model);
  fused.reference = tiny_model(model);
  for (int64_t i = 0; i < model.layers; ++i) {
    const std::string attention = fmt::format("model.layers.{}.self_attn.", i);
    const std::string mlp = fmt::format("model.layers.{}.mlp.", i);
    for (const char* part : {"q_proj", "k_proj", "v_proj"}) {
      fused.stored.remove(attention + part + ".weight");
      fused.stored.remove(attention + part + ".weight_scale");
    }
    for (const char* part : {"gate_proj", "up_proj"}) {
      fused.stored.remove(mlp + part + ".weight");
      fused.stored.remove(mlp + part + ".weight_scale");
    }
    fused.stored.add_linear(attention + "qkv_proj", 464, 256, quant);
    fused.stored.add_linear(mlp + "gate_up_proj", 768, 256, quant);
    add_parts(
        fused.stored, attention + "qkv_proj", 256,
        {{attention + "q_proj", 232}, {attention + "k_proj", 116}, {attention + "v_proj", 116}},
        fused.reference);
    add_parts(fused.stored, mlp + "gate_up_proj", 256,
              {{mlp + "gate_proj", 384}, {mlp + "up_proj", 384}}, fused.reference);
  }
  fused.stored.config()["architectures"] = {"Phi3ForCausalLM"};
  fused.stored.config()["model_type"] = "phi3";
  return fused;
}

TEST(CaseB06, BlockScalesOfAFusedMatrixFollowTheirRowsIntoTheParts) {
  for (const LayerQuant& quant :
       {tiny_fp8_block(128, 128, DType::F32), tiny_fp8_weight_only(ScaleTile::block(128, 64)),
        tiny_fp8_dynamic(DType::F32), tiny_fp8_weight_only(ScaleTile::group(64))}) {
    Fused fused = fused_model(quant);
    const TinyFolder folder;
    fused.stored.write(folder.path());
    expect_reference(folder.path(), fused.reference, fused.model);
  }
}

TEST(CaseB07, CodesUnderAnExcludedNameAreRefused) {
  const TinyFolder folder;
  TinyCheckpoint checkpoint = tiny_model(m0_block());
  checkpoint.config()["quantization_config"]["modules_to_not_convert"] = {"lm_head",
                                                                          "mlp.gate_proj"};
  checkpoint.write(folder.path());
  EXPECT_THAT(refusal_of([&] { planned(folder.path()); }),
              AllOf(HasSubstr("mlp.gate_proj.weight"), HasSubstr("weight_scale_inv"),
                    HasSubstr("modules_to_not_convert")));
}

// Stores `values` of a scale under another shape.
void reshape_scales(TinyCheckpoint& checkpoint, const std::string& leaf, DType dtype,
                    const std::function<Shape(int64_t count)>& shape) {
  for (const std::string& name : checkpoint.names()) {
    if (!name.ends_with(leaf)) continue;
    const std::vector<double> values = checkpoint.values(name);
    const std::vector<float> floats(values.begin(), values.end());
    checkpoint.remove(name);
    checkpoint.add_values(name, dtype, shape(static_cast<int64_t>(values.size())), floats);
  }
}

TEST(CaseB08, AScaleOfOneValueMayHaveAnyRank) {
  std::vector<Rows> results;
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{1, 1}}) {
    const TinyFolder folder;
    TinyCheckpoint checkpoint = tiny_model(m0_tensor());
    reshape_scales(checkpoint, ".weight_scale", DType::F32, [&](int64_t) { return shape; });
    checkpoint.write(folder.path());
    results.push_back(our_logprobs(folder.path(), some_ids(5)));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(CaseB09, RowScalesAreAColumnOrAListOfNAndNothingElse) {
  std::vector<Rows> results;
  for (const bool column : {true, false}) {
    const TinyFolder folder;
    TinyCheckpoint checkpoint = tiny_model(m0_channel());
    reshape_scales(checkpoint, ".weight_scale", DType::F32, [&](int64_t n) {
      return column ? Shape{n, 1} : Shape{n};
    });
    checkpoint.write(folder.path());
    results.push_back(our_logprobs(folder.path(), some_ids(5)));
  }
  EXPECT_EQ(results[0], results[1]);
  for (const bool row : {true, false}) {
    const TinyFolder folder;
    TinyCheckpoint checkpoint = tiny_model(m0_channel());
    const std::string name = "model.layers.0.self_attn.q_proj.weight_scale";
    checkpoint.remove(name);
    const std::vector<float> values(256, 0.01F);
    const int64_t count = row ? 256 : 255;
    checkpoint.add_values(name, DType::F32, row ? Shape{1, 256} : Shape{255, 1},
                          std::span(values).first(static_cast<size_t>(count)));
    checkpoint.write(folder.path());
    EXPECT_THAT(refusal_of([&] { planned(folder.path()); }),
                AllOf(HasSubstr("256"), HasSubstr(row ? "[1, 256]" : "[255, 1]")));
  }
}

TEST(CaseB10, BlockScalesMayBeStoredInAnyFloatType) {
  std::vector<Rows> results;
  for (const DType dtype : {DType::F32, DType::BF16, DType::F16}) {
    const TinyFolder folder;
    TinyCheckpoint checkpoint = tiny_model(m0_block());
    uint64_t seed = 1;
    for (const std::string& name : checkpoint.names()) {
      if (!name.ends_with("_scale_inv")) continue;
      const size_t count = checkpoint.values(name).size();
      const bool deep = name.find("down_proj") != std::string::npos;
      const bool wide =
          name.find("gate") != std::string::npos || name.find("up") != std::string::npos;
      const bool narrow =
          name.find("k_proj") != std::string::npos || name.find("v_proj") != std::string::npos;
      const Shape shape = deep     ? Shape{2, 3}
                          : wide   ? Shape{3, 2}
                          : narrow ? Shape{1, 2}
                                   : Shape{2, 2};
      checkpoint.remove(name);
      checkpoint.add_values(name, dtype, shape, powers_of_two(count, ++seed));
    }
    checkpoint.write(folder.path());
    results.push_back(our_logprobs(folder.path(), some_ids(5)));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

// Experts with float scales: recognised, and refused by name.
TEST(CaseB11, ExpertsWithTheirOwnScalesAreRefusedByName) {
  const TinyFolder folder;
  TinyCheckpoint checkpoint = tiny_model(m0_channel());
  checkpoint.config()["num_local_experts"] = 4;
  checkpoint.add_linear("model.layers.0.mlp.experts.0.gate_proj", 192, 256, tiny_fp8_dynamic());
  checkpoint.write(folder.path());
  EXPECT_THAT(planned(folder.path()).plan.failures,
              ::testing::Contains(HasSubstr("model.layers.0.mlp.experts")));
}

TEST(CaseB12, EachPartOfQkvKeepsItsOwnScale) {
  const TinyFolder folder;
  const TinyModel model = m0(tiny_fp8_weight_only(ScaleTile::tensor(), DType::F32));
  TinyCheckpoint checkpoint = tiny_model(model);
  TinyCheckpoint reference = tiny_model(model);
  for (const char* part : {"q_proj", "k_proj", "v_proj"}) {
    const std::string name = fmt::format("model.layers.0.self_attn.{}", part);
    const float scale = part[0] == 'q' ? 1.0F : 0x1p-10F;
    const double before = checkpoint.values(name + ".weight_scale")[0];
    std::vector<float> values;
    for (const double value : checkpoint.values(name + ".weight"))
      values.push_back(static_cast<float>(value / before * double{scale}));
    checkpoint.remove(name + ".weight_scale");
    checkpoint.add_values(name + ".weight_scale", DType::F32, {1}, std::span(&scale, 1));
    reference.remove(name + ".weight");
    reference.add_values(name + ".weight", DType::F32,
                         {static_cast<int64_t>(values.size()) / 256, 256}, values);
  }
  checkpoint.write(folder.path());
  expect_reference(folder.path(), reference, model);
}

TEST(CaseB13, AFusedMatrixMayHaveOneScaleOrOneForEachPart) {
  const TinyModel model = m0(tiny_fp8_weight_only(ScaleTile::tensor(), DType::F32));
  for (const char* form : {"[]", "[1]", "[3]", "[1, 3]"}) {
    const bool whole = std::string_view(form) == "[]" || std::string_view(form) == "[1]";
    TinyCheckpoint checkpoint = tiny_model(model);
    TinyCheckpoint reference = tiny_model(model);
    for (int64_t i = 0; i < model.layers; ++i) {
      const std::string attention = fmt::format("model.layers.{}.self_attn.", i);
      if (whole) {
        // One scale for all parts: what k and v mean changes with it.
        const double shared = checkpoint.values(attention + "q_proj.weight_scale")[0];
        for (const char* part : {"k_proj", "v_proj"}) {
          const double own = checkpoint.values(attention + part + ".weight_scale")[0];
          std::vector<float> values;
          for (const double value : checkpoint.values(attention + part + ".weight"))
            values.push_back(static_cast<float>(value / own * shared));
          reference.remove(attention + part + ".weight");
          reference.add_values(attention + part + ".weight", DType::F32, {128, 256}, values);
        }
      }
    }
    store_as_phi3(checkpoint, model.layers);
    for (int64_t i = 0; i < model.layers; ++i) {
      const std::string name = fmt::format("model.layers.{}.self_attn.qkv_proj.weight_scale", i);
      const std::vector<double> scales = checkpoint.values(name);
      std::vector<float> stored(scales.begin(), whole ? scales.begin() + 1 : scales.end());
      checkpoint.remove(name);
      const Shape shape = std::string_view(form) == "[]"    ? Shape{}
                          : std::string_view(form) == "[1]" ? Shape{1}
                          : std::string_view(form) == "[3]" ? Shape{3}
                                                            : Shape{1, 3};
      checkpoint.add_values(name, DType::F32, shape, stored);
    }
    const TinyFolder folder;
    checkpoint.write(folder.path());
    SCOPED_TRACE(form);
    expect_reference(folder.path(), reference, model);
  }
}

TEST(CaseB14, ValuesBeyondAStaticScaleSaturate) {
  const TinyFolder folder;
  const TinyModel model = m0_tensor();
  TinyCheckpoint checkpoint = tiny_model(model);
  const float scale = 0.001F;  // activations near 1 are near 1000 before rounding
  for (const std::string& name : checkpoint.names()) {
    if (!name.ends_with(".input_scale")) continue;
    checkpoint.remove(name);
    checkpoint.add_values(name, DType::F32, {1}, std::span(&scale, 1));
  }
  checkpoint.write(folder.path());
  expect_reference(folder.path(), checkpoint, model);
}

TEST(CaseB15, ARowOfZerosGivesZerosAndDisturbsNoOther) {
  const TinyFolder folder;
  TinyCheckpoint checkpoint = tiny_model(m0_ct_block());
  std::vector<float> table;
  for (const double value : checkpoint.values("model.embed_tokens.weight"))
    table.push_back(static_cast<float>(value));
  std::fill_n(table.begin() + 7 * 256, 256, 0.0F);        // token 7
  std::fill_n(table.begin() + 9 * 256 + 128, 128, 0.0F);  // the second group of token 9
  checkpoint.remove("model.embed_tokens.weight");
  checkpoint.add_values("model.embed_tokens.weight", DType::BF16, {512, 256}, table);
  checkpoint.write(folder.path());
  const Rows zero_last = our_logprobs(folder.path(), {3, 9, 7});
  const Rows other_last = our_logprobs(folder.path(), {3, 9, 8});
  for (const auto& row : zero_last) {
    for (const float value : row) ASSERT_TRUE(std::isfinite(value));
  }
  EXPECT_EQ(zero_last[0], other_last[0]);
  EXPECT_EQ(zero_last[1], other_last[1]);
  // A zero row alone has no input at all: every logit is 0.
  const Rows alone = our_logprobs(folder.path(), {7});
  for (const float value : alone[0]) ASSERT_FLOAT_EQ(value, -std::log(512.0F));
}

TEST(CaseB17, TheNanCodeStopsTheRequestNamingTheLayer) {
  EXPECT_EQ(f8e4m3_to_f32(0x7E), 448);
  EXPECT_TRUE(std::isnan(f8e4m3_to_f32(0x7F)) && std::isnan(f8e4m3_to_f32(0xFF)));
  EXPECT_TRUE(f8e4m3_to_f32(0x80) == 0 && std::signbit(f8e4m3_to_f32(0x80)));
  EXPECT_EQ(f8e4m3_to_f32(0x01), 0x1p-9F);
  const TinyFolder folder;
  TinyCheckpoint checkpoint = endless_checkpoint(small_model(tiny_fp8_dynamic()));
  const std::string name = "model.layers.1.mlp.up_proj.weight";
  std::vector<std::byte> codes(size_t{96} * 64, std::byte{0x30});
  codes[777] = std::byte{0x7F};
  checkpoint.remove(name);
  checkpoint.add(name, DType::F8E4M3, {96, 64}, codes);
  checkpoint.write(folder.path());
  add_text_files(folder.path());
  const Ran ran = run_octet({"run", folder.path().string(), "-p", "hello", "-n", "2"});
  EXPECT_EQ(ran.status, 4);
  EXPECT_THAT(ran.err, HasSubstr("model.layers.1.mlp"));
}

TEST(CaseB18, RoundingIsToTheNearestEvenCode) {
  const std::pair<float, float> expected[] = {{1.0625F, 1.0F}, {1.1875F, 1.25F}, {464, 448},
                                              {500, 448},      {0x1p-10F, 0},    {0x1p-11F, 0}};
  for (const auto& [value, rounded] : expected)
    EXPECT_EQ(f8e4m3_to_f32(f32_to_f8e4m3(value)), rounded) << value;
  EXPECT_EQ(f32_to_f8e4m3(-0.0F), 0x80);
}

TEST(CaseB19, MoreRanksThanKeyValueHeadsAreRefusedWithTheNumbersThatWork) {
  for (const TinyModel& model : {m0_block(), m0_channel()}) {
    const TinyFolder folder;
    tiny_model(model).write(folder.path());
    const Ran ran = run_octet({"plan", folder.path().string(), "-tp", "4"});
    EXPECT_EQ(ran.status, 3);
    EXPECT_THAT(ran.out + ran.err, AllOf(HasSubstr("2 key-value heads"), HasSubstr("1, 2")));
  }
}

TEST(CaseB20, StackedExpertsAreRefusedByName) {
  const TinyFolder folder;
  TinyCheckpoint checkpoint = tiny_model(m0_block());
  checkpoint.config()["num_local_experts"] = 4;
  checkpoint.add("model.layers.0.mlp.experts.gate_up_proj.weight", DType::F8E4M3, {4, 200, 256},
                 std::vector<std::byte>(size_t{4} * 200 * 256, std::byte{0x30}));
  checkpoint.write(folder.path());
  EXPECT_THAT(planned(folder.path()).plan.failures,
              ::testing::Contains(HasSubstr("model.layers.0.mlp.experts")));
}

TEST(CaseB21, AShortLastGroupHasItsOwnScale) {
  TinyModel model = m0_block();
  model.hidden = 200;
  const TinyFolder folder;
  const TinyCheckpoint checkpoint = tiny_model(model);
  checkpoint.write(folder.path());
  expect_reference(folder.path(), checkpoint, model);
}

TEST(CaseB22, AScaleOfAnUnknownNameIsAnErrorAndNeverOne) {
  const TinyFolder folder;
  TinyCheckpoint checkpoint = tiny_model(m0_tensor());
  for (const std::string& name : checkpoint.names()) {
    if (!name.ends_with(".weight_scale")) continue;
    checkpoint.rename(name, name.substr(0, name.size() - 12) + "scale_weight");
  }
  checkpoint.write(folder.path());
  EXPECT_THAT(refusal_of([&] { planned(folder.path()); }),
              AllOf(HasSubstr("weight_scale"), HasSubstr("scale_weight")));
}

TEST(CaseB22, AScaleBelowZeroOrNotFiniteIsRefusedBeforeAnAnswer) {
  for (const float scale :
       {-1.0F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const TinyFolder folder;
    TinyCheckpoint checkpoint = tiny_model(m0_tensor());
    const std::string name = "model.layers.1.mlp.up_proj.weight_scale";
    checkpoint.remove(name);
    checkpoint.add_values(name, DType::F32, {1}, std::span(&scale, 1));
    checkpoint.write(folder.path());
    EXPECT_THAT(refusal_of([&] { our_logprobs(folder.path(), {1}); }),
                AllOf(HasSubstr("model.layers.1.mlp.up_proj"), HasSubstr("weight scale")));
  }
}

TEST(CaseB23, PowerOfTwoActivationScalesAreRefusedByTheirField) {
  const TinyFolder folder;
  TinyCheckpoint checkpoint = tiny_model(m0_block());
  checkpoint.config()["quantization_config"]["scale_fmt"] = "ue8m0";
  checkpoint.write(folder.path());
  EXPECT_THAT(refusal_of([&] { planned(folder.path()); }),
              AllOf(HasSubstr("scale_fmt"), HasSubstr("powers of two")));
}

TEST(CaseB24, AModelOfFloat16DoesNotOverflow) {
  TinyModel model = m0_channel();
  model.dtype = DType::F16;
  model.layers = 1;
  TinyCheckpoint checkpoint = tiny_model(model);
  // Sums of 1e5 and more in down_proj, beyond the 65504 of float16.
  for (const char* module : {"model.layers.0.mlp.up_proj", "model.layers.0.mlp.gate_proj"}) {
    const std::string name = fmt::format("{}.weight_scale", module);
    const std::vector<float> scales(384, 1.0F);
    checkpoint.remove(name);
    checkpoint.add_values(name, DType::F32, {384, 1}, scales);
  }
  const TinyFolder folder;
  checkpoint.write(folder.path());
  for (const auto& row : our_logprobs(folder.path(), some_ids(4))) {
    for (const float value : row) ASSERT_TRUE(std::isfinite(value));
  }
}

}  // namespace
}  // namespace octet
