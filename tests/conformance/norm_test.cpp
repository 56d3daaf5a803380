// Every RMSNorm kernel against the double reference.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "num/bf16.h"
#include "op/norm.h"
#include "op/norm_reference.h"
#include "tests/conformance/matrix_lists.h"
#include "tests/conformance/op_kernels.h"
#include "tests/conformance/random.h"

namespace octet::conformance {
namespace {

using NormConformance = OpTest<RmsNorm>;
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(NormConformance);

constexpr int64_t kWidths[] = {1, 5, 7, 8, 16, 33, 64, 100, 576, 1023, 4096};
constexpr int64_t kRows = 5;
const DeclareMatrices kMatrices{
    {{RmsNorm::kName, "[rows, width]", [] { return with_rows(kRows, kWidths); }}}};
constexpr int64_t kPad = 3;
constexpr float kEpsilon = 1e-5F;

struct Data {
  Data(int64_t row_width, uint64_t seed) : width(row_width), stride(row_width + kPad) {
    Random random(seed);
    x = random.bells(kRows * stride, 2);
    delta = random.bells(kRows * stride);
    weight = random.bells(width);
    // A row of small values, where epsilon counts.
    for (int64_t i = 0; i < width; ++i) {
      x[static_cast<size_t>(stride + i)] *= 1e-4F;
      delta[static_cast<size_t>(stride + i)] *= 1e-4F;
    }
    out.assign(x.size(), 7.0F);
  }

  RmsNorm::Args args() {
    RmsNorm::Args a;
    a.x = x.data();
    a.x_stride = stride;
    a.weight = weight.data();
    a.out = out.data();
    a.out_stride = stride;
    a.rows = kRows;
    a.width = width;
    a.epsilon = kEpsilon;
    return a;
  }

  int64_t width, stride;
  std::vector<float> x, delta, weight, out;
};

TEST_P(NormConformance, StaysWithinBoundOfTheDoubleReference) {
  for (int64_t width : kWidths) {
    if (!refused({width}).empty()) continue;
    Data data(width, 21);
    run_on(kernel(), data.args(), 2);
    for (int64_t row = 0; row < kRows; ++row) {
      const auto expected = norm_reference(data.x.data() + row * data.stride, data.weight.data(),
                                           width, kEpsilon, false);
      for (int64_t i = 0; i < width; ++i) {
        const Expected& e = expected[static_cast<size_t>(i)];
        ASSERT_NEAR(data.out[static_cast<size_t>(row * data.stride + i)], e.value, e.bound)
            << kernel().name << ", width " << width << ", row " << row << ", element " << i;
      }
      for (int64_t i = width; i < data.stride; ++i) {
        EXPECT_EQ(data.out[static_cast<size_t>(row * data.stride + i)], 7.0F) << "gap overwritten";
      }
    }
  }
}

TEST_P(NormConformance, WithoutAWeightOnlyAddsAndWatches) {
  for (int64_t width : kWidths) {
    if (!refused({width}).empty()) continue;
    Data data(width, 27);
    const Data before(width, 27);
    RmsNorm::Args args = data.args();
    args.delta = data.delta.data();
    args.delta_stride = data.stride;
    args.weight = nullptr;
    std::vector<int32_t> flags(kRows, 100);
    args.not_finite = flags.data();
    args.tag = 4;
    data.x[static_cast<size_t>(2 * data.stride)] = std::numeric_limits<float>::infinity();
    run_on(kernel(), args, 2);
    EXPECT_EQ(data.out, before.out) << "nothing is normalised";
    for (int64_t row = 0; row < kRows; ++row) {
      EXPECT_EQ(flags[static_cast<size_t>(row)], row == 2 ? 4 : 100);
      for (int64_t i = 0; i < width; ++i) {
        if (row == 2 && i == 0) continue;
        const auto at = static_cast<size_t>(row * data.stride + i);
        ASSERT_EQ(data.x[at], before.x[at] + before.delta[at]) << kernel().name << ", " << width;
      }
    }
  }
}

TEST_P(NormConformance, AddsTheResidualInPlaceBeforeTheNorm) {
  for (int64_t width : kWidths) {
    if (!refused({width}).empty()) continue;
    Data data(width, 22);
    Data sums(width, 22);
    for (size_t i = 0; i < sums.x.size(); ++i) sums.x[i] += data.delta[i];
    RmsNorm::Args args = data.args();
    args.delta = data.delta.data();
    args.delta_stride = data.stride;
    run_on(kernel(), args, 2);
    run_on(kernel(), sums.args(), 2);
    for (int64_t row = 0; row < kRows; ++row) {
      const auto bytes = static_cast<size_t>(width) * sizeof(float);
      const auto at = static_cast<size_t>(row * data.stride);
      EXPECT_EQ(std::memcmp(&data.x[at], &sums.x[at], bytes), 0) << "width " << width;
      EXPECT_EQ(std::memcmp(&data.out[at], &sums.out[at], bytes), 0) << "width " << width;
    }
  }
}

TEST_P(NormConformance, MayWriteOverItsInput) {
  for (int64_t width : kWidths) {
    if (!refused({width}).empty()) continue;
    Data apart(width, 23);
    Data over(width, 23);
    run_on(kernel(), apart.args(), 1);
    RmsNorm::Args args = over.args();
    args.out = args.x;
    run_on(kernel(), args, 2);
    for (int64_t row = 0; row < kRows; ++row) {
      const auto at = static_cast<size_t>(row * over.stride);
      EXPECT_EQ(
          std::memcmp(&apart.out[at], &over.x[at], static_cast<size_t>(width) * sizeof(float)), 0)
          << "width " << width;
    }
  }
}

// transformers in bfloat16: the sum of squares in float32, the rest rounded step by step.
TEST_P(NormConformance, RoundsEveryStepToBfloat16WhenAsked) {
  int64_t open = 0;
  int64_t total = 0;
  for (int64_t width : kWidths) {
    if (!refused({width}).empty()) continue;
    Data data(width, 24);
    Data original(width, 24);
    for (Data* d : {&data, &original}) {
      for (float& v : d->x) v = round_to_bf16(v);
      for (float& v : d->delta) v = round_to_bf16(v);
      for (float& v : d->weight) v = round_to_bf16(v);
    }
    RmsNorm::Args args = data.args();
    args.delta = data.delta.data();
    args.delta_stride = data.stride;
    args.round_bf16 = true;
    run_on(kernel(), args, 2);
    for (int64_t row = 0; row < kRows; ++row) {
      const auto at = static_cast<size_t>(row * data.stride);
      for (size_t i = at; i < at + static_cast<size_t>(width); ++i) {
        ASSERT_EQ(data.x[i], round_to_bf16(original.x[i] + original.delta[i]));
      }
      const auto expected = norm_reference(&data.x[at], data.weight.data(), width, kEpsilon, true);
      for (size_t i = 0; i < static_cast<size_t>(width); ++i) {
        const float got = data.out[at + i];
        EXPECT_EQ(got, round_to_bf16(got));
        ASSERT_NEAR(got, expected[i].value, expected[i].bound) << "width " << width;
        ++total;
        open += static_cast<int64_t>(expected[i].bound > 0);
      }
    }
  }
  // A factor that differs in its last bit may tip one rounding to the other neighbour.
  EXPECT_LE(open * 1000, 2 * total) << open << " of " << total << " elements may be either of two";
}

TEST_P(NormConformance, FlagsRowsWhoseSumOfSquaresIsNotFinite) {
  for (float poison :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    for (int64_t width : kWidths) {
      if (!refused({width}).empty()) continue;
      Data data(width, 25);
      data.x[static_cast<size_t>(3 * data.stride + width - 1)] = poison;
      std::vector<int32_t> flags = {100, 5, 100, 100, 100};
      RmsNorm::Args args = data.args();
      args.not_finite = flags.data();
      args.tag = 9;
      run_on(kernel(), args, 2);
      EXPECT_EQ(flags, (std::vector<int32_t>{100, 5, 100, 9, 100})) << "width " << width;
    }
  }
}

TEST_P(NormConformance, KeepsTheSmallestTagOfAllRowsThatShareAFlag) {
  Data data(64, 26);
  if (!refused({64}).empty()) return;
  for (int64_t row : {0, 1, 3}) {
    data.x[static_cast<size_t>(row * data.stride)] = std::numeric_limits<float>::infinity();
  }
  std::vector<int32_t> flags = {100, 3, 100};
  RmsNorm::Args args = data.args();
  args.not_finite = flags.data();
  args.rows_per_flag = 2;
  args.tag = 4;
  run_on(kernel(), args, 3);
  EXPECT_EQ(flags, (std::vector<int32_t>{4, 3, 100}));
}

TEST_P(NormConformance, GivesARowTheSameBitsWhateverThreadsAndBatch) {
  for (int64_t width : kWidths) {
    if (!refused({width}).empty()) continue;
    Data all(width, 27);
    run_on(kernel(), all.args(), 3);
    for (int64_t row = 0; row < kRows; ++row) {
      Data one(width, 27);
      RmsNorm::Args args = one.args();
      args.x += row * one.stride;
      args.out += row * one.stride;
      args.rows = 1;
      run_on(kernel(), args, 1);
      const auto at = static_cast<size_t>(row * one.stride);
      EXPECT_EQ(std::memcmp(&one.out[at], &all.out[at], static_cast<size_t>(width) * 4), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, NormConformance, testing::ValuesIn(runnable<RmsNorm>()),
                         NormConformance::parameter_name);

}  // namespace
}  // namespace octet::conformance
