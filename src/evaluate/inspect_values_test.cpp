// Rules of inspect() on scales and weights that have that one fault.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <limits>

#include "evaluate/inspect_test.h"

namespace octet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

TEST_F(InspectTest, SoundCheckpointsOfEveryFormHaveNoFindings) {
  for (const LayerQuant& quant : {tiny_plain(), tiny_fp8_dynamic(), tiny_fp8_static(),
                                  tiny_fp8_block(), tiny_mxfp8(), tiny_fp8_weight_only()}) {
    fs::remove_all(model());
    write(tiny_model(small(quant)));
    const Inspection inspection = inspected();
    EXPECT_TRUE(inspection.clean()) << explain(inspection);
    EXPECT_THAT(inspection.findings, IsEmpty()) << explain(inspection);
    EXPECT_GT(inspection.tensors, 0);
  }
}

TEST_F(InspectTest, AMissingScale) {
  TinyCheckpoint checkpoint = tiny_model(small());
  checkpoint.remove(kQScale);
  write(checkpoint);
  EXPECT_THAT(faults(), ElementsAre("scale-missing " + kQWeight));
}

TEST_F(InspectTest, AScaleOfAnotherSpellingIsNamed) {
  TinyCheckpoint checkpoint = tiny_model(small());
  checkpoint.rename(kQScale, std::string(kQ) + ".scale_weight");
  write(checkpoint);
  EXPECT_THAT(only("scale-missing").got, HasSubstr("scale_weight"));
}

TEST_F(InspectTest, AScaleWithoutAWeightOrBesideAPlainOne) {
  TinyCheckpoint checkpoint = tiny_model(small(tiny_plain()));
  checkpoint.add_values(kQScale, DType::F32, Shape{64, 1}, std::vector<float>(64, 0.01F));
  write(checkpoint);
  EXPECT_THAT(only("scale-orphan").got, HasSubstr("bf16"));
}

TEST_F(InspectTest, ZeroNegativeAndNotFiniteScalesAreCountedAndPlaced) {
  write(with_scales(scales(0)));
  EXPECT_THAT(faults(), ElementsAre("scale-zero " + kQScale));
  EXPECT_THAT(only("scale-zero").got, AllOf(HasSubstr("1 of 64"), HasSubstr("[3, 0]")));
  write(with_scales(scales(-0.5F)));
  EXPECT_THAT(only("scale-negative").got, HasSubstr("-0.5"));
  write(with_scales(scales(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_THAT(only("scale-not-finite").got, HasSubstr("nan"));
  write(with_scales(scales(std::numeric_limits<float>::infinity())));
  EXPECT_THAT(only("scale-not-finite").got, HasSubstr("inf"));
}

TEST_F(InspectTest, SubnormalScalesAreJudgedByTheirOwnDtype) {
  write(with_scales(scales(0x1p-130F)));
  EXPECT_THAT(faults(), ElementsAre("scale-denormal " + kQScale));
  write(with_scales(scales(0x1p-16F), DType::F16));
  EXPECT_THAT(faults(), ElementsAre("scale-denormal " + kQScale));
  write(with_scales(scales(0x1p-16F), DType::BF16));
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(InspectTest, ReciprocalsOfScalesLookInverse) {
  const TinyCheckpoint sound = tiny_model(small());
  write(with_scales(std::vector<float>(64, 1 / 0.001F)));
  const Finding finding = only("scale-inverse");
  EXPECT_EQ(finding.subject, kQScale);
  EXPECT_EQ(finding.rule->severity, Severity::Warning);
  EXPECT_THAT(finding.got, HasSubstr("1e+03"));
}

TEST_F(InspectTest, LargeWeightsAloneDoNotLookInverse) {
  std::vector<float> values(64, 1.0F);  // weights up to 448
  values[3] = 0.5F;
  write(with_scales(values));
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(InspectTest, ScalesThatAreAllOneBesideLargeCodesWereNeverWritten) {
  write(with_scales(std::vector<float>(64, 1.0F)));
  EXPECT_THAT(faults(), ElementsAre("scale-one " + kQScale));
  EXPECT_THAT(only("scale-one").got, HasSubstr("448"));
  EXPECT_EQ(only("scale-one").rule->severity, Severity::Warning);
  TinyCheckpoint checkpoint = with_codes(DType::F8E4M3, 0x6E);  // 112: a weight cast without scale
  checkpoint.remove(kQScale);
  checkpoint.add_values(kQScale, DType::F32, Shape{64, 1}, std::vector<float>(64, 1.0F));
  write(checkpoint);
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(InspectTest, TensorsThatAreMostlySubnormal) {
  const std::string norm = "model.norm.weight";
  for (const DType dtype : {DType::F32, DType::BF16}) {
    TinyCheckpoint checkpoint = tiny_model(small());
    std::vector<float> values(64, 0);
    for (size_t i = 0; i < 5; ++i) values[i] = i < 3 ? -0x1p-130F : 1;
    checkpoint.remove(norm);
    checkpoint.add_values(norm, dtype, Shape{64}, values);
    write(checkpoint);
    EXPECT_THAT(faults(), ElementsAre("weight-subnormal " + norm));
    EXPECT_THAT(only("weight-subnormal").got, HasSubstr("3 of 5"));
    values[5] = 0x1p-126F;
    checkpoint.remove(norm);
    checkpoint.add_values(norm, dtype, Shape{64}, values);
    write(checkpoint);
    EXPECT_THAT(faults(), IsEmpty());
  }
}

TEST_F(InspectTest, NaNScalesOfMicroscaling) {
  TinyCheckpoint checkpoint = tiny_model(small(tiny_mxfp8()));
  std::vector<std::byte> codes(64 * 2, std::byte{120});
  codes[5] = std::byte{255};
  checkpoint.remove(kQScale);
  checkpoint.add(kQScale, DType::U8, Shape{64, 2}, codes);
  write(checkpoint);
  EXPECT_THAT(only("scale-not-finite").got, HasSubstr("[2, 1]"));
}

TEST_F(InspectTest, ScalesOfMicroscalingHavePlausibleSizes) {
  struct Case {
    uint8_t code;
    std::vector<std::string> faults;
  };
  for (const DType dtype : {DType::U8, DType::F8E8M0}) {
    for (const Case& c :
         {Case{118, {}}, Case{137, {"scale-inverse " + kQScale}},
          Case{127, {"scale-one " + kQScale}}, Case{1, {"scale-too-small " + kQScale}},
          Case{167, {"scale-inverse " + kQScale}}, Case{168, {"scale-too-large " + kQScale}},
          Case{254, {"scale-too-large " + kQScale}}}) {
      TinyCheckpoint checkpoint = tiny_model(small(tiny_mxfp8()));
      checkpoint.remove(kQScale);
      checkpoint.add(kQScale, dtype, Shape{64, 2}, std::vector<std::byte>(128, std::byte{c.code}));
      write(checkpoint);
      EXPECT_EQ(faults(), c.faults) << int{c.code};
    }
  }
}

TEST_F(InspectTest, ScalesAndWeightsWhoseProductsFloat32MayNotHold) {
  write(with_scales(scales(3e38F)));
  EXPECT_THAT(faults(), ElementsAre("scale-too-large " + kQScale));
  EXPECT_THAT(only("scale-too-large").got,
              AllOf(HasSubstr("1 of 64"), HasSubstr("e+38"), HasSubstr("[3, 0]")));
  for (const DType dtype : {DType::F32, DType::BF16}) {
    TinyCheckpoint checkpoint = tiny_model(small());
    std::vector<float> values(64, 1);
    values[9] = -3e38F;
    checkpoint.remove("model.norm.weight");
    checkpoint.add_values("model.norm.weight", dtype, Shape{64}, values);
    write(checkpoint);
    EXPECT_THAT(faults(), ElementsAre("weight-too-large model.norm.weight"));
    EXPECT_THAT(only("weight-too-large").got, AllOf(HasSubstr("e+38"), HasSubstr("[9]")));
  }
}

TEST_F(InspectTest, StaticInputScalesFarFromAnyInput) {
  const std::string name = std::string(kQ) + ".input_scale";
  const auto with_input_scale = [&](float value) {
    TinyCheckpoint checkpoint = tiny_model(small(tiny_fp8_static()));
    checkpoint.remove(name);
    checkpoint.add_values(name, DType::F32, Shape{1}, std::span(&value, 1));
    write(checkpoint);
    return faults();
  };
  EXPECT_THAT(with_input_scale(1e30F), ElementsAre("scale-too-large " + name));
  EXPECT_THAT(with_input_scale(1e-36F), ElementsAre("scale-too-small " + name));
  EXPECT_THAT(with_input_scale(std::numeric_limits<float>::quiet_NaN()),
              ElementsAre("scale-not-finite " + name));
  EXPECT_THAT(with_input_scale(0x1p-40F), IsEmpty());
  EXPECT_THAT(with_input_scale(0x1p40F), IsEmpty());
}

TEST_F(InspectTest, ScalesOfAnotherShapeThanTheStrategy) {
  TinyCheckpoint checkpoint = tiny_model(small(tiny_fp8_block(32, 32)));
  checkpoint.remove(kQScale);
  checkpoint.add_values(kQScale, DType::BF16, Shape{3, 2}, std::vector<float>(6, 0.001F));
  write(checkpoint);
  const Finding finding = only("scale-shape");
  EXPECT_EQ(finding.subject, kQScale);
  EXPECT_THAT(finding.expected, AllOf(HasSubstr("[2, 2]"), HasSubstr("block32x32")));
  EXPECT_THAT(finding.got, HasSubstr("[3, 2]"));
}

TEST_F(InspectTest, ScalesOfAnotherDtypeAndOfATensorNameWhatIsTaken) {
  TinyCheckpoint checkpoint = tiny_model(small());
  checkpoint.remove(kQScale);
  checkpoint.add(kQScale, DType::I32, Shape{64, 1}, std::vector<std::byte>(256));
  write(checkpoint);
  EXPECT_EQ(only("scale-shape").expected, "[64, 1] or [64] of f32, bf16 or f16");
  EXPECT_EQ(only("scale-shape").got, "[64, 1] of i32");
  checkpoint = tiny_model(small(tiny_fp8_static()));
  checkpoint.remove(kQScale);
  checkpoint.add_values(kQScale, DType::F32, Shape{2, 2}, std::vector<float>(4, 0.001F));
  write(checkpoint);
  EXPECT_EQ(only("scale-shape").expected, "one value, as [1] or [], of f32, bf16 or f16");
}

TEST_F(InspectTest, NaNAndInfiniteCodesAreNamedWithTheirPlace) {
  struct Case {
    DType dtype;
    uint8_t code;
  };
  for (const Case& c : {Case{DType::F8E4M3, 0x7F}, Case{DType::F8E4M3, 0xFF},
                        Case{DType::F8E5M2, 0x7C}, Case{DType::F8E5M2, 0xFE}}) {
    const std::byte largest{c.dtype == DType::F8E4M3 ? uint8_t{0x7E} : uint8_t{0x7B}};
    write(with_codes(c.dtype, [&](size_t i) { return i == 70 ? std::byte{c.code} : largest; }));
    const Finding finding = only("weight-not-finite");
    EXPECT_EQ(finding.subject, kQWeight);
    EXPECT_THAT(finding.got, AllOf(HasSubstr("1 of 4096"), HasSubstr("[1, 6]"),
                                   HasSubstr(fmt::format("0x{:02X}", c.code))));
  }
}

TEST_F(InspectTest, NaNInAPlainTensor) {
  TinyCheckpoint checkpoint = tiny_model(small());
  std::vector<float> values(64, 1);
  values[9] = std::numeric_limits<float>::quiet_NaN();
  checkpoint.remove("model.norm.weight");
  checkpoint.add_values("model.norm.weight", DType::BF16, Shape{64}, values);
  write(checkpoint);
  EXPECT_THAT(faults(), ElementsAre("weight-not-finite model.norm.weight"));
  EXPECT_THAT(only("weight-not-finite").got, HasSubstr("[9]"));
}

TEST_F(InspectTest, CodesThatUseASixteenthOfTheRange) {
  const auto all = [](uint8_t code) { return [code](size_t) { return std::byte{code}; }; };
  write(with_codes(DType::F8E4M3, all(0x5E)));  // 28 = 448 / 16
  EXPECT_THAT(faults(), ElementsAre("range-unused " + kQWeight));
  EXPECT_THAT(only("range-unused").got, HasSubstr("28"));
  write(with_codes(DType::F8E4M3, all(0)));
  EXPECT_THAT(faults(), ElementsAre("range-unused " + kQWeight));
  write(with_codes(DType::F8E4M3, all(0x5F)));  // 30
  EXPECT_THAT(faults(), IsEmpty());
}

}  // namespace
}  // namespace octet
