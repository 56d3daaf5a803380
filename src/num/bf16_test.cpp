#include "num/bf16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace octet {
namespace {

// The value of binary16 bits from the words of IEEE 754, by powers of two.
double f16_value(uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 0x1F);
  const auto mantissa = static_cast<double>(bits & 0x3FF);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0x1F) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  }
  return exponent == 0 ? sign * mantissa * std::exp2(-24)
                       : sign * (1 + mantissa / 1024) * std::exp2(exponent - 15);
}

TEST(Bf16, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = bf16_to_f32(static_cast<uint16_t>(bits));
    const uint16_t back = f32_to_bf16(value);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(bf16_to_f32(back))) << bits;
      EXPECT_EQ(back & 0x8000U, bits & 0x8000U) << bits;
    } else {
      EXPECT_EQ(back, bits);
    }
  }
}

// Between every two neighbours: the midpoint goes to the even one, its neighbours to their side.
TEST(Bf16, RoundsToNearestEvenBetweenEveryTwoNeighbours) {
  for (uint32_t bits = 0; bits < 0x7F80; ++bits) {
    const uint32_t middle = bits << 16 | 0x8000U;
    const uint16_t even = static_cast<uint16_t>(bits + (bits & 1U));
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(middle)), even) << bits;
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(middle - 1)), bits);
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(middle + 1)), bits + 1);
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(middle | 0x80000000U)), even | 0x8000U) << bits;
  }
}

TEST(Bf16, OverflowBecomesInfinityAndNanStaysNan) {
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::infinity()), 0x7F80);
  // A NaN whose payload is in the low half only must not become an infinity.
  EXPECT_TRUE(std::isnan(round_to_bf16(std::bit_cast<float>(0x7F800001U))));
  EXPECT_TRUE(std::isnan(round_to_bf16(std::bit_cast<float>(0xFF80FFFFU))));
}

TEST(F16, EveryValueDecodesAndSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = f16_to_f32(static_cast<uint16_t>(bits));
    const double expected = f16_value(bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value)))) << bits;
      continue;
    }
    EXPECT_EQ(value, expected) << bits;
    EXPECT_EQ(std::signbit(value), bits >= 0x8000) << bits;
    EXPECT_EQ(f32_to_f16(value), bits);
  }
}

TEST(F16, RoundsToNearestEvenBetweenEveryTwoNeighbours) {
  for (uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const auto middle = static_cast<float>((f16_value(bits) + f16_value(bits + 1)) / 2);
    EXPECT_EQ(f32_to_f16(middle), bits + (bits & 1U)) << bits;
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, 0.0F)), bits);
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, 1e9F)), bits + 1);
    EXPECT_EQ(f32_to_f16(-middle), (bits + (bits & 1U)) | 0x8000U) << bits;
  }
}

TEST(F16, OverflowBecomesInfinity) {
  EXPECT_EQ(f32_to_f16(65519.996F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7C00);
  EXPECT_EQ(f32_to_f16(-1e30F), 0xFC00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::infinity()), 0x7C00);
  EXPECT_EQ(f32_to_f16(1e-30F), 0x0000);
}

}  // namespace
}  // namespace octet
