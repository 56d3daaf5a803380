#include "num/f8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "num/bf16.h"

namespace octet {
namespace {

constexpr DType kTypes[] = {DType::F8E4M3, DType::F8E5M2};

// The value of a code from the words of the specification (OFP8, table 1), by powers of two.
double value_of(DType dtype, int code) {
  const int man_bits = dtype == DType::F8E4M3 ? 3 : 2;
  const int bias = dtype == DType::F8E4M3 ? 7 : 15;
  const int exponent = (code & 0x7F) >> man_bits, mantissa = code & ((1 << man_bits) - 1);
  const double sign = (code & 0x80) != 0 ? -1 : 1;
  const int top = (1 << (7 - man_bits)) - 1;
  if (dtype == DType::F8E4M3 && exponent == top && mantissa == 7) return std::nan("");
  if (dtype == DType::F8E5M2 && exponent == top) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  }
  const double fraction = mantissa / static_cast<double>(1 << man_bits);
  return exponent == 0 ? sign * fraction * std::exp2(1 - bias)
                       : sign * (1 + fraction) * std::exp2(exponent - bias);
}

// Codes of the finite values >= 0 in rising order are 0, 1, 2, ...; the last one.
int last_finite(DType dtype) {
  return dtype == DType::F8E4M3 ? 0x7E : 0x7B;
}

// Nearest code by searching all of them: ties go to the even code, beyond the last saturates.
uint8_t nearest(DType dtype, float value) {
  const int sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return static_cast<uint8_t>(sign | (dtype == DType::F8E4M3 ? 0x7F : 0x7E));
  const double magnitude =
      std::min(std::fabs(static_cast<double>(value)), value_of(dtype, last_finite(dtype)));
  int best = 0;
  for (int code = 1; code <= last_finite(dtype); ++code) {
    const double here = std::fabs(value_of(dtype, code) - magnitude);
    const double before = std::fabs(value_of(dtype, best) - magnitude);
    if (here < before || (here == before && code % 2 == 0)) best = code;
  }
  return static_cast<uint8_t>(sign | best);
}

TEST(F8, DecodesAll256CodesOfBothTypes) {
  for (DType dtype : kTypes) {
    for (int code = 0; code < 256; ++code) {
      const double expected = value_of(dtype, code);
      const float scalar = dtype == DType::F8E4M3 ? f8e4m3_to_f32(static_cast<uint8_t>(code))
                                                  : f8e5m2_to_f32(static_cast<uint8_t>(code));
      const float table = f8_table(dtype)[static_cast<size_t>(code)];
      EXPECT_EQ(std::bit_cast<uint32_t>(scalar), std::bit_cast<uint32_t>(table)) << code;
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(scalar)) << name(dtype) << " " << code;
      } else {
        EXPECT_EQ(scalar, expected) << name(dtype) << " " << code;
      }
      EXPECT_EQ(std::signbit(scalar), code >= 0x80) << name(dtype) << " " << code;
    }
  }
}

TEST(F8, EncodingADecodedCodeGivesTheCode) {
  for (DType dtype : kTypes) {
    for (int code = 0; code < 256; ++code) {
      const float value = f8_table(dtype)[static_cast<size_t>(code)];
      if (!std::isfinite(value)) continue;
      EXPECT_EQ(f32_to_f8(dtype, value), code) << name(dtype);
    }
  }
}

TEST(F8, EncodesAll65536Bf16ValuesToTheNearestCodeTiesToEven) {
  for (DType dtype : kTypes) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const float value = bf16_to_f32(static_cast<uint16_t>(bits));
      ASSERT_EQ(f32_to_f8(dtype, value), nearest(dtype, value))
          << name(dtype) << ", bf16 bits " << bits << ", value " << value;
    }
  }
}

TEST(F8, RoundsAtAndBesideEveryMidpoint) {
  for (DType dtype : kTypes) {
    for (int code = 0; code < last_finite(dtype); ++code) {
      const auto low = static_cast<float>(value_of(dtype, code));
      const auto high = static_cast<float>(value_of(dtype, code + 1));
      const float middle = (low + high) / 2;
      for (float value : {low, std::nextafter(low, 1e9F), std::nextafter(middle, 0.0F), middle,
                          std::nextafter(middle, 1e9F), std::nextafter(high, 0.0F)}) {
        EXPECT_EQ(f32_to_f8(dtype, value), nearest(dtype, value)) << name(dtype) << " " << value;
        EXPECT_EQ(f32_to_f8(dtype, -value), nearest(dtype, -value)) << name(dtype) << " " << -value;
      }
    }
  }
}

TEST(F8, SaturatesAndKeepsNan) {
  const float inf = std::numeric_limits<float>::infinity();
  for (float value : {448.1F, 464.0F, 480.0F, 1e30F, inf}) {
    EXPECT_EQ(f32_to_f8e4m3(value), 0x7E) << value;
    EXPECT_EQ(f32_to_f8e4m3(-value), 0xFE) << value;
  }
  for (float value : {57345.0F, 61440.0F, 65536.0F, 1e30F, inf}) {
    EXPECT_EQ(f32_to_f8e5m2(value), 0x7B) << value;
    EXPECT_EQ(f32_to_f8e5m2(-value), 0xFB) << value;
  }
  for (DType dtype : kTypes) {
    const uint8_t code = f32_to_f8(dtype, std::numeric_limits<float>::quiet_NaN());
    EXPECT_TRUE(std::isnan(f8_table(dtype)[code])) << name(dtype);
  }
}

TEST(F8, FloatsBelowHalfTheSmallestCodeBecomeZeroOfTheirSign) {
  for (DType dtype : kTypes) {
    const auto half = static_cast<float>(value_of(dtype, 1) / 2);
    for (float value : {half, std::nextafter(half, 0.0F), 1e-30F, 1e-45F, 0.0F}) {
      EXPECT_EQ(f32_to_f8(dtype, value), 0x00) << name(dtype) << " " << value;
      EXPECT_EQ(f32_to_f8(dtype, -value), 0x80) << name(dtype) << " " << value;
    }
    EXPECT_EQ(f32_to_f8(dtype, std::nextafter(half, 1.0F)), 0x01) << name(dtype);
  }
}

TEST(F8, DecodesEveryCodeOfE8M0) {
  for (int code = 0; code < 255; ++code) {
    EXPECT_EQ(f8e8m0_to_f32(static_cast<uint8_t>(code)), std::exp2(code - 127)) << code;
  }
  EXPECT_TRUE(std::isnan(f8e8m0_to_f32(255)));
}

TEST(F8, AskingForATypeThatIsNotF8IsABug) {
  EXPECT_THROW(f8_table(DType::F8E8M0), Error);
  EXPECT_THROW(f32_to_f8(DType::BF16, 1.0F), Error);
}

}  // namespace
}  // namespace octet
