// Every kernel of the largest magnitude.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "op/absmax.h"
#include "tests/conformance/matrix_lists.h"
#include "tests/conformance/op_kernels.h"
#include "tests/conformance/random.h"

namespace octet::conformance {
namespace {

using AbsMaxConformance = OpTest<AbsMax>;
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AbsMaxConformance);

constexpr int64_t kWidths[] = {1, 3, 7, 8, 33, 64, 577};
constexpr int64_t kRows = 3;
const DeclareMatrices kMatrices{
    {{AbsMax::kName, "[rows, width]", [] { return with_rows(kRows, kWidths); }}}};
constexpr int64_t kGap = 5;  // elements between rows that do not belong to the tensor

AbsMax::Args args(const std::vector<float>& x, int64_t width, float& out) {
  return {x.data(), width + kGap, kRows, width, &out};
}

TEST_P(AbsMaxConformance, IsExactForEveryPlaceAndIgnoresWhatLiesBetweenRows) {
  for (const int64_t width : kWidths) {
    std::vector<float> x = Random(51).bells(kRows * (width + kGap));
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t i = width; i < width + kGap; ++i)
        x[static_cast<size_t>(row * (width + kGap) + i)] = 1e9F;
    }
    for (const int64_t place : {int64_t{0}, width / 2, width - 1}) {
      for (int64_t row = 0; row < kRows; ++row) {
        const auto at = static_cast<size_t>(row * (width + kGap) + place);
        const float before = x[at];
        x[at] = row % 2 == 0 ? -100.5F : 100.5F;
        float out = 0;
        run_on(kernel(), args(x, width, out), 2);
        EXPECT_EQ(out, 100.5F) << "width " << width << ", row " << row << ", column " << place;
        x[at] = before;
      }
    }
  }
}

TEST_P(AbsMaxConformance, KeepsTheLargestOverCalls) {
  const std::vector<float> x(static_cast<size_t>(kRows * (8 + kGap)), -2.0F);
  float out = 3;
  run_on(kernel(), args(x, 8, out), 1);
  EXPECT_EQ(out, 3.0F);
  out = 1;
  run_on(kernel(), args(x, 8, out), 1);
  EXPECT_EQ(out, 2.0F);
}

TEST_P(AbsMaxConformance, NotANumberStays) {
  std::vector<float> x(static_cast<size_t>(kRows * (8 + kGap)), 1.0F);
  x[3] = std::numeric_limits<float>::quiet_NaN();
  float out = 0;
  run_on(kernel(), args(x, 8, out), 1);
  EXPECT_TRUE(std::isnan(out));
  run_on(kernel(), args(std::vector<float>(x.size(), 5.0F), 8, out), 1);
  EXPECT_TRUE(std::isnan(out)) << "a later call must not hide it";
}

INSTANTIATE_TEST_SUITE_P(Kernels, AbsMaxConformance, testing::ValuesIn(runnable<AbsMax>()),
                         AbsMaxConformance::parameter_name);

}  // namespace
}  // namespace octet::conformance
