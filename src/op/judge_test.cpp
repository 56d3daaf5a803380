// What a kernel of an operation without schemes says no to, and in which words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "op/attention.h"
#include "op/gather.h"
#include "op/norm.h"
#include "op/quantize.h"
#include "op/rope.h"

namespace octet {
namespace {

using ::testing::IsEmpty;

constexpr Quantize::Caps kQuantize{
    .outputs = {DType::BF16, DType::F8E4M3, DType::F8E5M2},
    .scales = {Granularity::Tensor, Granularity::Row, Granularity::Group}};

template <class Op>
std::vector<Refusal> judged(const typename Op::Caps& caps, const typename Op::Problem& problem) {
  std::vector<Refusal> out;
  judge(caps, problem, out);
  return out;
}

std::vector<Refusal> quantize_refusals(const QuantSpec& spec) {
  return judged<Quantize>(kQuantize, {spec, 256});
}

// The only refusal, which must have `code`; its words.
std::string only(const std::vector<Refusal>& refusals, RefusalCode code) {
  EXPECT_EQ(refusals.size(), 1U);
  if (refusals.size() != 1) return {};
  EXPECT_EQ(refusals[0].code, code) << refusals[0].detail;
  return refusals[0].detail;
}

TEST(JudgeQuantize, TakesWhatTheFormatsAskFor) {
  for (DType dtype : {DType::F8E4M3, DType::F8E5M2}) {
    EXPECT_THAT(quantize_refusals({dtype, ScaleTile::tensor(), DType::F32, ScaleTiming::Static}),
                IsEmpty());
    for (ScaleTile tile : {ScaleTile::row(), ScaleTile::group(128), ScaleTile{1, 128, 0, 40}}) {
      EXPECT_THAT(quantize_refusals({dtype, tile, DType::F32, ScaleTiming::Dynamic}), IsEmpty());
    }
    EXPECT_THAT(
        quantize_refusals({dtype, ScaleTile::group(32), DType::F8E8M0, ScaleTiming::Dynamic}),
        IsEmpty());
  }
}

TEST(JudgeQuantize, RefusesOneDynamicScaleForAllRows) {
  for (DType scale : {DType::F32, DType::F8E8M0}) {
    EXPECT_EQ(
        only(quantize_refusals({DType::F8E4M3, ScaleTile::tensor(), scale, ScaleTiming::Dynamic}),
             RefusalCode::ActivationScale),
        "activation scale tensor is dynamic: a row would depend on its batch");
  }
}

TEST(JudgeQuantize, RefusesSeveralStaticScales) {
  EXPECT_EQ(
      only(quantize_refusals({DType::F8E4M3, ScaleTile::row(), DType::F32, ScaleTiming::Static}),
           RefusalCode::ActivationScale),
      "activation scale row is static: static input scales are one for the whole tensor");
  EXPECT_EQ(only(quantize_refusals(
                     {DType::F8E4M3, ScaleTile::group(64), DType::F32, ScaleTiming::Static}),
                 RefusalCode::ActivationScale),
            "activation scale group64 is static: static input scales are one for the whole tensor");
}

TEST(JudgeQuantize, RefusesTilesOfSeveralRows) {
  EXPECT_EQ(only(quantize_refusals(
                     {DType::F8E4M3, ScaleTile::block(128, 64), DType::F32, ScaleTiming::Dynamic}),
                 RefusalCode::ActivationScale),
            "activation scale block128x64 not in {tensor, row, group}");
}

TEST(JudgeQuantize, RefusesScaleDtypesThatNoKernelComputes) {
  for (DType scale : {DType::F16, DType::BF16, DType::F8E4M3, DType::U8}) {
    EXPECT_EQ(
        only(quantize_refusals({DType::F8E4M3, ScaleTile::row(), scale, ScaleTiming::Dynamic}),
             RefusalCode::ScaleDtype),
        "activation scale dtype " + std::string(name(scale)) + " not in {f32, f8e8m0}");
  }
}

TEST(JudgeQuantize, ReportsAllReasons) {
  const std::vector<Refusal> no =
      quantize_refusals({DType::F8E5M2, ScaleTile::tensor(), DType::BF16, ScaleTiming::Dynamic});
  ASSERT_EQ(no.size(), 2U);
  EXPECT_EQ(no[0].code, RefusalCode::ActivationScale);
  EXPECT_EQ(no[1].code, RefusalCode::ScaleDtype);
}

TEST(JudgeQuantize, AsksNothingOfTheScalesOfBfloat16) {
  EXPECT_THAT(
      quantize_refusals({DType::BF16, ScaleTile::tensor(), DType::I64, ScaleTiming::Dynamic}),
      IsEmpty());
}

TEST(JudgeQuantize, RefusesOutputsThatAreNotDeclared) {
  EXPECT_EQ(only(quantize_refusals({.dtype = DType::F16}), RefusalCode::Input),
            "output f16 not in {bf16, f8e4m3, f8e5m2}");
}

TEST(JudgeAttention, NamesTheCacheDtypeAndBothLimitsOfTheHead) {
  const Attention::Caps caps{{DType::BF16}, 8, 256};
  EXPECT_THAT(judged<Attention>(caps, {4, 2, 256, DType::BF16, 1, 1}), IsEmpty());
  const std::vector<Refusal> no = judged<Attention>(caps, {4, 2, 257, DType::F32, 1, 1});
  ASSERT_EQ(no.size(), 3U);
  EXPECT_EQ(no[0], (Refusal{RefusalCode::Input, "KV dtype f32 not in {bf16}"}));
  EXPECT_EQ(no[1], (Refusal{RefusalCode::Shape, "head_dim 257 is not a multiple of 8"}));
  EXPECT_EQ(no[2], (Refusal{RefusalCode::Shape, "head_dim 257 is over 256"}));
}

TEST(JudgeRope, NamesTheCacheDtypeAndTheRotaryMultiple) {
  const Rope::Caps caps{{DType::F32}, 16};
  EXPECT_THAT(judged<Rope>(caps, {64, 32, DType::F32}), IsEmpty());
  const std::vector<Refusal> no = judged<Rope>(caps, {64, 40, DType::F16});
  ASSERT_EQ(no.size(), 2U);
  EXPECT_EQ(no[0].detail, "KV dtype f16 not in {f32}");
  EXPECT_EQ(no[1].detail, "rotary_dim 40 is not a multiple of 16");
}

TEST(JudgeNorm, NamesTheMultipleOfTheWidth) {
  EXPECT_THAT(judged<RmsNorm>({.width_multiple = 32}, {576}), IsEmpty());
  EXPECT_EQ(only(judged<RmsNorm>({.width_multiple = 32}, {100}), RefusalCode::Shape),
            "width 100 is not a multiple of 32");
}

TEST(JudgeGather, NamesTheDtypeOfTheTable) {
  EXPECT_EQ(only(judged<Gather>({{DType::F32, DType::BF16}}, {DType::F8E4M3}), RefusalCode::Input),
            "table dtype f8e4m3 not in {f32, bf16}");
}

}  // namespace
}  // namespace octet
