#include "op/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "num/f8.h"

namespace octet {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(DynamicScale, IsTheLargestMagnitudeOverTheLargestCode) {
  EXPECT_EQ(dynamic_scale(448, DType::F8E4M3), 1.0F);
  EXPECT_EQ(dynamic_scale(57344, DType::F8E5M2), 1.0F);
  EXPECT_EQ(dynamic_scale(1.0F, DType::F8E4M3), 1.0F / 448.0F);
  // One rounding: not a product with the inverse.
  EXPECT_EQ(dynamic_scale(3.3F, DType::F8E4M3), 3.3F / 448.0F);
}

TEST(DynamicScale, IsTwoToTheMinus23ForATileOfZeros) {
  EXPECT_EQ(dynamic_scale(0, DType::F8E4M3), 0x1p-23F);
  EXPECT_EQ(dynamic_scale(0, DType::F8E5M2), 0x1p-23F);
}

TEST(DynamicScale, KeepsSubnormalScalesWhoseQuotientsStayFinite) {
  for (DType dtype : {DType::F8E4M3, DType::F8E5M2}) {
    for (float amax = 0x1p-149F; amax < 0x1p-110F; amax *= 1.7F) {
      const float scale = dynamic_scale(amax, dtype);
      EXPECT_GT(scale, 0);
      const float back = f8_table(dtype)[f32_to_f8(dtype, amax / scale)];
      EXPECT_TRUE(std::isfinite(back)) << amax;
    }
  }
}

TEST(DynamicScale, PassesOnWhatIsNotFinite) {
  EXPECT_TRUE(std::isnan(dynamic_scale(std::numeric_limits<float>::quiet_NaN(), DType::F8E4M3)));
  EXPECT_EQ(dynamic_scale(kInf, DType::F8E4M3), kInf);
}

QuantSpec mx(DType dtype) {
  return {dtype, ScaleTile::group(32), DType::F8E8M0, ScaleTiming::Dynamic};
}

TEST(DynamicScale, IsAPowerOfTwoForMx) {
  // 448 = 1.75 * 2^8 rounds up to 2^9: the exponent of 448 itself is 8.
  EXPECT_EQ(dynamic_scale(256, mx(DType::F8E4M3)), 1.0F);
  EXPECT_EQ(dynamic_scale(447, mx(DType::F8E4M3)), 1.0F);
  EXPECT_EQ(dynamic_scale(448, mx(DType::F8E4M3)), 2.0F);
  EXPECT_EQ(dynamic_scale(512, mx(DType::F8E4M3)), 2.0F);
  EXPECT_EQ(dynamic_scale(0.01F, mx(DType::F8E4M3)), 0x1p-15F);
  EXPECT_EQ(dynamic_scale(32768, mx(DType::F8E5M2)), 1.0F);
}

TEST(DynamicScale, StaysInTheRangeOfE8m0ForMx) {
  EXPECT_EQ(dynamic_scale(0, mx(DType::F8E4M3)), 0x1p-127F);
  EXPECT_EQ(dynamic_scale(0x1p-140F, mx(DType::F8E4M3)), 0x1p-127F);
  EXPECT_EQ(dynamic_scale(3e38F, mx(DType::F8E4M3)), 0x1p120F);
  EXPECT_TRUE(std::isnan(dynamic_scale(kInf, mx(DType::F8E4M3))));
}

TEST(DynamicScale, EqualsTheFloatFormulaForFloatScales) {
  QuantSpec spec{DType::F8E4M3, ScaleTile::row(), DType::F32, ScaleTiming::Dynamic};
  EXPECT_EQ(dynamic_scale(5.5F, spec), dynamic_scale(5.5F, DType::F8E4M3));
}

}  // namespace
}  // namespace octet
