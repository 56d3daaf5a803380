#include "op/linear_reference.h"

#include <gmock/gmock.h>

#include "num/f8.h"

namespace octet {
namespace {

using ::testing::ElementsAre;

// A weight of E4M3 codes with block scales of 2 x 2, [3, 3]; the last blocks are short.
struct Record {
  std::vector<uint8_t> codes;
  std::vector<float> scales{1, 2, 4, 8};
  std::vector<float> bias{0.5F, -1, 100};
  QuantView view;

  Record() {
    for (const float value : {1, 2, 3, 4, 5, 6, 7, 8, 9}) {
      codes.push_back(f32_to_f8e4m3(value));
    }
    view.spec = {DType::F8E4M3, ScaleTile::block(2, 2), DType::F32, ScaleTiming::Static};
    view.codes = {reinterpret_cast<const std::byte*>(codes.data()), DType::F8E4M3, Shape{3, 3}, 3};
    view.scales = {reinterpret_cast<const std::byte*>(scales.data()), DType::F32, Shape{2, 2}, 2};
    view.bias = {reinterpret_cast<const std::byte*>(bias.data()), DType::F32, Shape{3}, 0};
    view.has_bias = true;
  }
  LinearProblem problem() const {
    return {.scheme = SchemeId::W8A16, .n = 3, .k = 3, .weight = view.spec};
  }
};

TEST(LinearReference, IsTheFormulaWithScalesAndBias) {
  const Record record;
  const std::vector<float> x{1, -1, 10};
  const std::vector<int64_t> outputs{0, 1, 2};
  ThreadPool pool(1);
  const LinearReference r =
      linear_reference(record.view, record.problem(), {x.data(), 3, nullptr}, 1, outputs, pool);
  // Rows of W: {1, 2, 3*2}, {4, 5, 6*2}, {7*4, 8*4, 9*8}.
  EXPECT_THAT(r.y, ElementsAre(59.5, 118, 816));
  EXPECT_THAT(r.magnitude, ElementsAre(63.5, 130, 880));
  // Of x (1 + 10) * 2; of W the sums of (1 + |code|)(1 + scale).
  EXPECT_THAT(r.underflow, ElementsAre((2 * 22 * 22 + 1) * 0x1p-126, (2 * 22 * 43 + 1) * 0x1p-126,
                                       (2 * 22 * 175 + 1) * 0x1p-126));
}

TEST(LinearReference, GivesTheOutputsAskedForOfEveryToken) {
  const Record record;
  std::vector<float> x(6 * 3);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 7;
  const std::vector<int64_t> all{0, 1, 2}, some{2, 0};
  ThreadPool one(1), two(2);
  const LinearInput input{x.data(), 3, nullptr};
  const LinearReference whole = linear_reference(record.view, record.problem(), input, 6, all, one);
  const LinearReference part = linear_reference(record.view, record.problem(), input, 6, some, two);
  for (size_t m = 0; m < 6; ++m) {
    EXPECT_EQ(part.y[2 * m], whole.y[3 * m + 2]);
    EXPECT_EQ(part.y[2 * m + 1], whole.y[3 * m]);
    const LinearReference alone = linear_reference(record.view, record.problem(),
                                                   {x.data() + 3 * m, 3, nullptr}, 1, all, one);
    for (size_t n = 0; n < 3; ++n) EXPECT_EQ(alone.y[n], whole.y[3 * m + n]);
  }
}

TEST(LinearReference, ScalesOfTheInputCountPerTokenAndGroup) {
  const Record record;
  LinearProblem problem = record.problem();
  problem.scheme = SchemeId::W8A8;
  problem.activation =
      QuantSpec{DType::F8E4M3, ScaleTile::group(2), DType::F32, ScaleTiming::Dynamic};
  const std::vector<uint8_t> x{f32_to_f8e4m3(1), f32_to_f8e4m3(1), f32_to_f8e4m3(1)};
  const std::vector<float> scales{0.5F, 3};
  const std::vector<int64_t> outputs{0};
  ThreadPool pool(1);
  const LinearReference r =
      linear_reference(record.view, problem, {x.data(), 3, scales.data()}, 1, outputs, pool);
  EXPECT_THAT(r.y, ElementsAre(0.5 + 0.5 + 1 + 18));
}

TEST(ScaleStretches, CountsWhereAnyScaleChanges) {
  LinearProblem problem{.n = 4, .k = 10};
  problem.weight = {DType::F8E4M3, ScaleTile::block(2, 4), DType::F32, ScaleTiming::Static};
  problem.activation =
      QuantSpec{DType::F8E4M3, ScaleTile::group(6), DType::F32, ScaleTiming::Dynamic};
  EXPECT_EQ(scale_stretches(problem, true).count, 3);  // 0-3, 4-7, 8-9
  EXPECT_EQ(scale_stretches(problem, true).longest, 4);
  EXPECT_EQ(scale_stretches(problem, false).count, 4);  // 0-3, 4-5, 6-7, 8-9
  problem.weight.tile = ScaleTile::row();
  EXPECT_EQ(scale_stretches(problem, true).count, 1);
  EXPECT_EQ(scale_stretches(problem, true).longest, 10);
}

}  // namespace
}  // namespace octet
