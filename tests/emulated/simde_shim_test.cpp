// The emulated intrinsics give what the instructions give, bit for bit, wherever the tests run on a
// machine that has them.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "device/info.h"
#include "num/bf16.h"
#include "tests/emulated/shim_case.h"

namespace octet {
namespace {

using Input = std::array<uint8_t, 192>;
using Output = std::array<uint8_t, 64>;

void put(Input& in, size_t lane, uint32_t bits) {
  std::memcpy(in.data() + 4 * lane, &bits, sizeof bits);
}

// Values where rounding, flushing and special cases meet, as float bits.
constexpr uint32_t kSpecial[] = {
    0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x80800000, 0x00800001, 0x3F800000,
    0xBF800000, 0x3F808000, 0x3F818000, 0x3F807FFF, 0x3F808001, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F7F8000,
    0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0x4F000000, 0xCF000000, 0x4EFFFFFF,
    0x1A000000, 0x9A800000, 0x3F003F80, 0x00013F80, 0x477FE000, 0x477FF000, 0x33800000, 0x387FC000};

// Round `round` of the inputs: random bits, bits with exponents near each other, near the smallest
// normal, and special values.
Input make_input(std::mt19937_64& random, int round) {
  Input in;
  for (size_t lane = 0; lane < 48; ++lane) {
    auto bits = static_cast<uint32_t>(random());
    const auto choice = static_cast<uint32_t>(random() % 16);
    switch (round % 4) {
      case 1:  // both bfloat16 halves between 2^-8 and 2^8, so that sums cancel and round
        bits = (bits & 0x807F807FU) | (119U + choice) << 7 | (119U + choice % 7) << 23;
        break;
      case 2:  // products and sums at the edge of the normal range
        bits = (bits & 0x807F807FU) | (60U + choice % 6) << 7 | (62U + choice % 4) << 23;
        if (lane >= 32) bits = (bits & 0x807FFFFFU) | (choice % 3) << 23;
        break;
      case 3:
        bits = kSpecial[random() % std::size(kSpecial)];
        break;
      default:
        break;
    }
    put(in, lane, bits);
  }
  return in;
}

template <class T>
::testing::AssertionResult same(const Output& got, const Output& want) {
  for (size_t i = 0; i < sizeof(Output) / sizeof(T); ++i) {
    T g, w;
    std::memcpy(&g, got.data() + i * sizeof(T), sizeof(T));
    std::memcpy(&w, want.data() + i * sizeof(T), sizeof(T));
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(g) && std::isnan(w)) continue;
    }
    if (std::memcmp(&g, &w, sizeof(T)) != 0) {
      return ::testing::AssertionFailure()
             << "lane " << i << ": emulated " << +g << ", hardware " << +w;
    }
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult same(Lanes lanes, const Output& got, const Output& want) {
  switch (lanes) {
    case Lanes::F32:
      return same<float>(got, want);
    case Lanes::F64:
      return same<double>(got, want);
    case Lanes::Bits:
      break;
  }
  return same<uint8_t>(got, want);
}

bool has_instructions() {
  const Features features = probe_cpu().features;
  return features.has(Feature::Avx512) && features.has(Feature::Avx512Bf16) &&
         features.has(Feature::Avx512Vbmi);
}

TEST(SimdeShim, GivesTheBitsOfTheHardware) {
  if (!has_instructions()) GTEST_SKIP() << "this machine has no AVX-512 with BF16 and VBMI";
  const auto emulated = emulation::cases();
  const auto native = hardware::cases();
  ASSERT_EQ(emulated.size(), native.size());
  for (size_t i = 0; i < emulated.size(); ++i) {
    std::mt19937_64 random(i);
    for (int round = 0; round < 4000; ++round) {
      const Input in = make_input(random, round);
      Output got{}, want{};
      emulated[i].run(in.data(), got.data());
      native[i].run(in.data(), want.data());
      ASSERT_TRUE(same(emulated[i].lanes, got, want)) << emulated[i].name << ", round " << round;
    }
  }
}

// One lane of dpbf16: sum + odd product, then + even product.
float dot_pair(float sum, float odd_a, float odd_b, float even_a, float even_b) {
  const auto pair = [](float even, float odd) {
    return static_cast<uint32_t>(f32_to_bf16(odd)) << 16 | f32_to_bf16(even);
  };
  Input in{};
  put(in, 0, pair(even_a, odd_a));
  put(in, 16, pair(even_b, odd_b));
  put(in, 32, std::bit_cast<uint32_t>(sum));
  Output out{};
  emulation::cases()[0].run(in.data(), out.data());
  float value;
  std::memcpy(&value, out.data(), sizeof value);
  return value;
}

TEST(SimdeShim, Dpbf16AddsTheOddProductFirst) {
  // 2^24 + 1 rounds to 2^24, and the even product takes that away; the other order leaves 1.
  EXPECT_EQ(dot_pair(0x1p24F, 1, 1, -0x1p12F, 0x1p12F), 0.0F);
  EXPECT_EQ(dot_pair(0x1p24F, -0x1p12F, 0x1p12F, 1, 1), 1.0F);
}

TEST(SimdeShim, Dpbf16FlushesSubnormalOperandsAndResults) {
  EXPECT_EQ(dot_pair(0x1p-127F, 0, 0, 0, 0), 0.0F);
  EXPECT_EQ(dot_pair(0, 0x1p-127F, 0x1p100F, 0, 0), 0.0F);
  EXPECT_EQ(dot_pair(0, 0x1p-70F, 0x1p-70F, 0, 0), 0.0F);
  EXPECT_EQ(dot_pair(0, 0x1p-63F, 0x1p-63F, 0, 0), 0x1p-126F);
  // Tiny is judged after rounding with an unbounded exponent: 2^-126 - 2^-150 needs no rounding
  // then and is flushed, 2^-126 - 2^-151 rounds to 2^-126 and stays.
  EXPECT_EQ(dot_pair(0x1p-126F, 0x1p-75F, -0x1p-75F, 0, 0), 0.0F);
  EXPECT_EQ(dot_pair(0x1p-126F, 0x1p-76F, -0x1p-75F, 0, 0), 0x1p-126F);
}

TEST(SimdeShim, Dpbf16KeepsNanAndInfinity) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(dot_pair(1, inf, 1, 2, 2), inf);
  EXPECT_TRUE(std::isnan(dot_pair(1, inf, 0, 0, 0)));
  EXPECT_TRUE(std::isnan(dot_pair(inf, -inf, 1, 0, 0)));
  EXPECT_TRUE(std::isnan(dot_pair(0, std::nanf(""), 0, 0, 0)));
}

}  // namespace
}  // namespace octet
