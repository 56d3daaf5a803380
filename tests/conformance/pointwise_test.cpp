// Every kernel of the gated activation, of rounding and of gathering rows.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "num/bf16.h"
#include "num/tensor.h"
#include "op/gather.h"
#include "op/pointwise.h"
#include "op/pointwise_reference.h"
#include "tests/conformance/matrix_lists.h"
#include "tests/conformance/op_kernels.h"
#include "tests/conformance/random.h"

namespace octet::conformance {
namespace {

using SiluMulConformance = OpTest<SiluMul>;
using RoundConformance = OpTest<RoundBf16>;
using GatherConformance = OpTest<Gather>;
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SiluMulConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RoundConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GatherConformance);

constexpr int64_t kWidths[] = {1, 4, 7, 8, 33, 64, 1536, 1537};
constexpr int64_t kRows = 4;     // of the gated activation
constexpr int64_t kEntries = 8;  // of the table to gather from
const std::vector<int32_t> kGathered = {20, 27, 19, 28, 24, 0, -1, 24};

// All upper halves of a float with several lower ones, as matrices with a gap after each row.
constexpr uint32_t kLowHalves[] = {0U, 1U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU};
constexpr int64_t kRoundGap = 3;
constexpr MatrixShape kRoundShapes[] = {{8, 49149}, {625, 625}};

const DeclareMatrices kMatrices{
    {{SiluMul::kName, "[rows, width]", [] { return with_rows(kRows, kWidths); }},
     {RoundBf16::kName, "[rows, width]",
      [] { return std::vector(std::begin(kRoundShapes), std::end(kRoundShapes)); }},
     {Gather::kName, "table [entries, width]", [] { return with_rows(kEntries, kWidths); }},
     {Gather::kName, "result [rows, width]",
      [] { return with_rows(static_cast<int64_t>(kGathered.size()), kWidths); }}}};

// Gates from far below to far above zero, special ones first.
std::vector<float> gates(int64_t count, uint64_t seed) {
  std::vector<float> values = {0.0F,   -0.0F, 1e-30F, -1e-30F, 1e30F,   -1e30F, 88.0F,
                               -88.0F, 89.0F, -89.0F, 104.0F,  -104.0F, 200.0F, -200.0F};
  Random random(seed);
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(random.uniform(-110, 110)));
    values.push_back(static_cast<float>(random.bell()));
  }
  return values;
}

SiluMul::Args silu_args(const std::vector<float>& gate, const std::vector<float>& up,
                        std::vector<float>& out) {
  SiluMul::Args args;
  args.gate = gate.data();
  args.up = up.data();
  args.stride = static_cast<int64_t>(gate.size());
  args.out = out.data();
  args.out_stride = args.stride;
  args.rows = 1;
  args.width = args.stride;
  return args;
}

TEST_P(SiluMulConformance, StaysWithinBoundOfTheDoubleReference) {
  const std::vector<float> gate = gates(20000, 41);
  const std::vector<float> up = Random(42).bells(static_cast<int64_t>(gate.size()));
  std::vector<float> out(gate.size());
  run_on(kernel(), silu_args(gate, up, out), 2);
  for (size_t i = 0; i < gate.size(); ++i) {
    const Expected e = silu_mul_reference(gate[i], up[i], false);
    ASSERT_NEAR(out[i], e.value, e.bound)
        << kernel().name << ", gate " << gate[i] << ", up " << up[i];
  }
}

TEST_P(SiluMulConformance, KeepsWhatIsNotFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> gate(16, 1.0F);
  std::vector<float> up(16, 1.0F);
  gate[1] = inf;
  gate[3] = nan;
  up[5] = nan;
  up[8] = -inf;
  std::vector<float> out(16);
  run_on(kernel(), silu_args(gate, up, out), 1);
  for (size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(std::isfinite(out[i]), i != 1 && i != 3 && i != 5 && i != 8) << "element " << i;
  }
  EXPECT_TRUE(std::isnan(out[3]));
  EXPECT_TRUE(std::isnan(out[5]));
}

TEST_P(SiluMulConformance, RoundsTwiceToBfloat16WhenAsked) {
  std::vector<float> gate = gates(5000, 43);
  std::vector<float> up = Random(44).bells(static_cast<int64_t>(gate.size()));
  for (float& v : gate) v = round_to_bf16(v);
  for (float& v : up) v = round_to_bf16(v);
  std::vector<float> out(gate.size());
  SiluMul::Args args = silu_args(gate, up, out);
  args.round_bf16 = true;
  run_on(kernel(), args, 2);
  size_t different = 0;
  for (size_t i = 0; i < gate.size(); ++i) {
    const double g = gate[i];
    const float silu = round_to_bf16(static_cast<float>(g / (1 + std::exp(-g))));
    const float expected = round_to_bf16(silu * up[i]);
    EXPECT_EQ(out[i], round_to_bf16(out[i]));
    ASSERT_NEAR(out[i], expected, std::fabs(expected) * 0x1p-6 + 0x1p-118) << "gate " << gate[i];
    different += static_cast<size_t>(std::fabs(out[i] - expected) > 0x1p-118F);
  }
  EXPECT_LE(different * 500, gate.size());
}

TEST_P(SiluMulConformance, KeepsRowsStridesAndThreadsApart) {
  for (int64_t width : kWidths) {
    // gate and up are two halves of one fused output.
    const int64_t stride = 2 * width + 5;
    const std::vector<float> fused = Random(45).bells(kRows * stride);
    const int64_t out_stride = width + 2;
    std::vector<float> all(static_cast<size_t>(kRows * out_stride), 7.0F);
    std::vector<float> single = all;
    SiluMul::Args args;
    args.gate = fused.data();
    args.up = fused.data() + width;
    args.stride = stride;
    args.out = all.data();
    args.out_stride = out_stride;
    args.rows = kRows;
    args.width = width;
    run_on(kernel(), args, 3);
    for (int64_t row = 0; row < kRows; ++row) {
      SiluMul::Args one = args;
      one.gate += row * stride;
      one.up += row * stride;
      one.out = single.data() + row * out_stride;
      one.rows = 1;
      run_on(kernel(), one, 1);
      for (int64_t i = width; i < out_stride; ++i) {
        EXPECT_EQ(all[static_cast<size_t>(row * out_stride + i)], 7.0F) << "gap overwritten";
      }
    }
    EXPECT_EQ(all, single) << kernel().name << ", width " << width;
  }
}

TEST_P(SiluMulConformance, MayWriteOverTheGate) {
  std::vector<float> gate = gates(3000, 47);
  const std::vector<float> up = Random(48).bells(static_cast<int64_t>(gate.size()));
  std::vector<float> apart(gate.size());
  run_on(kernel(), silu_args(gate, up, apart), 1);
  run_on(kernel(), silu_args(gate, up, gate), 2);
  EXPECT_EQ(std::memcmp(gate.data(), apart.data(), gate.size() * sizeof(float)), 0);
}

TEST_P(RoundConformance, EqualsTheScalarRoundingForEveryUpperHalfAndNearTies) {
  std::vector<float> x;
  for (uint32_t high = 0; high < 65536; ++high) {
    for (uint32_t low : kLowHalves) x.push_back(std::bit_cast<float>(high << 16 | low));
  }
  for (const auto& [rows, width] : kRoundShapes) {
    ASSERT_LE(rows * (width + kRoundGap), static_cast<int64_t>(x.size()));
    std::vector<float> rounded = x;
    RoundBf16::Args args;
    args.x = rounded.data();
    args.rows = rows;
    args.width = width;
    args.stride = args.width + kRoundGap;
    run_on(kernel(), args, 2);
    for (size_t i = 0; i < x.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const bool gap = at % args.stride >= args.width || at >= rows * args.stride;
      const float expected = gap ? x[i] : round_to_bf16(x[i]);
      ASSERT_EQ(std::bit_cast<uint32_t>(rounded[i]), std::bit_cast<uint32_t>(expected))
          << kernel().name << ", " << rows << " rows, bits " << std::hex
          << std::bit_cast<uint32_t>(x[i]);
    }
  }
}

TEST_P(GatherConformance, WidensTheRowsAskedForAndZeroesForeignOnes) {
  for (DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    if (!refused({dtype}).empty()) continue;
    for (int64_t width : kWidths) {
      const int64_t stride = width + 3;
      Random random(46);
      std::vector<std::byte> table(static_cast<size_t>(kEntries * stride * bytes_of(dtype)));
      for (std::byte& b : table) b = static_cast<std::byte>(random.bits());
      const std::vector<int32_t>& ids = kGathered;
      std::vector<float> out(ids.size() * static_cast<size_t>(width), 7.0F);
      Gather::Args args;
      args.table = table.data();
      args.table_dtype = dtype;
      args.table_stride = stride;
      args.first_entry = 20;
      args.entries = kEntries;
      args.ids = ids.data();
      args.out = out.data();
      args.rows = static_cast<int64_t>(ids.size());
      args.width = width;
      run_on(kernel(), args, 2);
      for (size_t r = 0; r < ids.size(); ++r) {
        const int64_t entry = ids[r] - 20;
        for (int64_t i = 0; i < width; ++i) {
          const float expected = entry < 0 || entry >= kEntries
                                     ? 0.0F
                                     : element({table.data(), dtype, {}, 0}, entry * stride + i);
          const float got = out[r * static_cast<size_t>(width) + static_cast<size_t>(i)];
          if (std::isnan(expected)) {
            ASSERT_TRUE(std::isnan(got));
          } else {
            ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(expected))
                << kernel().name << ", " << name(dtype) << ", id " << ids[r] << ", element " << i;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, SiluMulConformance, testing::ValuesIn(runnable<SiluMul>()),
                         SiluMulConformance::parameter_name);
INSTANTIATE_TEST_SUITE_P(Kernels, RoundConformance, testing::ValuesIn(runnable<RoundBf16>()),
                         RoundConformance::parameter_name);
INSTANTIATE_TEST_SUITE_P(Kernels, GatherConformance, testing::ValuesIn(runnable<Gather>()),
                         GatherConformance::parameter_name);

}  // namespace
}  // namespace octet::conformance
