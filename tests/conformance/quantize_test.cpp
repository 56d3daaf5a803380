// Every quantise kernel gives, byte for byte, the codes and scales of the formula in op/quantize.h.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "num/bf16.h"
#include "num/f8.h"
#include "op/quantize.h"
#include "tests/conformance/matrix_lists.h"
#include "tests/conformance/op_kernels.h"
#include "tests/conformance/random.h"

namespace octet::conformance {
namespace {

using QuantizeConformance = OpTest<Quantize>;
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(QuantizeConformance);

constexpr int64_t kWidths[] = {1, 7, 31, 64, 100, 129, 576, 1030};
constexpr int64_t kRows = 7;
const DeclareMatrices kMatrices{
    {{Quantize::kName, "[rows, width]", [] { return with_rows(kRows, kWidths); }}}};

struct Quantized {
  std::vector<uint8_t> codes;
  std::vector<float> scales;
};

Quantized quantized(const Kernel<Quantize>& kernel, const Quantize::Args& base, int threads) {
  Quantize::Args args = base;
  Quantized out;
  out.codes.assign(static_cast<size_t>(args.rows * args.width * bytes_of(args.output.dtype)), 0xEE);
  out.scales.assign(static_cast<size_t>(args.rows * args.output.tile.tile_cols(args.width)), -7);
  args.codes = out.codes.data();
  args.scales = out.scales.data();
  run_on(kernel, args, threads);
  return out;
}

// The formula, one element at a time.
Quantized expected(const Quantize::Args& args) {
  Quantized out;
  const QuantSpec& spec = args.output;
  const int64_t tiles = spec.tile.tile_cols(args.width);
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* x = args.x + row * args.x_stride;
    if (spec.dtype == DType::BF16) {
      for (int64_t i = 0; i < args.width; ++i) {
        const uint16_t bits = f32_to_bf16(x[i]);
        out.codes.push_back(static_cast<uint8_t>(bits & 0xFFU));
        out.codes.push_back(static_cast<uint8_t>(bits >> 8));
      }
      continue;
    }
    std::vector<float> scales(static_cast<size_t>(tiles));
    for (int64_t t = 0; t < tiles; ++t) {
      float amax = 0;
      for (int64_t i = 0; i < args.width; ++i) {
        if (spec.tile.tile_col(i) != t) continue;
        amax = std::isnan(amax) || std::isnan(x[i]) ? std::numeric_limits<float>::quiet_NaN()
                                                    : std::fmax(amax, std::fabs(x[i]));
      }
      scales[static_cast<size_t>(t)] =
          spec.timing == ScaleTiming::Static ? args.static_scale[0] : dynamic_scale(amax, spec);
    }
    for (int64_t i = 0; i < args.width; ++i) {
      const float scale = scales[static_cast<size_t>(spec.tile.tile_col(i))];
      out.codes.push_back(f32_to_f8(spec.dtype, x[i] / scale));
    }
    out.scales.insert(out.scales.end(), scales.begin(), scales.end());
  }
  return out;
}

// Codes equal byte by byte, but for the sign of NaN, which no one reads.
void expect_same(const Quantized& got, const Quantized& want, const Quantize::Args& args,
                 const std::string& what) {
  ASSERT_EQ(got.codes.size(), want.codes.size());
  const DType dtype = args.output.dtype;
  for (size_t i = 0; i < got.codes.size(); ++i) {
    if (got.codes[i] == want.codes[i]) continue;
    const bool both_nan = is_f8(dtype) && std::isnan(f8_table(dtype)[got.codes[i]]) &&
                          std::isnan(f8_table(dtype)[want.codes[i]]);
    ASSERT_TRUE(both_nan) << what << ", byte " << i << ": got " << int{got.codes[i]}
                          << ", expected " << int{want.codes[i]};
  }
  if (!is_f8(dtype) || args.output.timing == ScaleTiming::Static) return;
  ASSERT_EQ(got.scales.size(), want.scales.size());
  for (size_t i = 0; i < got.scales.size(); ++i) {
    if (std::isnan(want.scales[i])) {
      ASSERT_TRUE(std::isnan(got.scales[i])) << what << ", scale " << i;
    } else {
      ASSERT_EQ(got.scales[i], want.scales[i]) << what << ", scale " << i;
    }
  }
}

Quantize::Args rows_of(const std::vector<float>& x, int64_t rows, int64_t width, QuantSpec spec) {
  Quantize::Args args;
  args.x = x.data();
  args.x_stride = static_cast<int64_t>(x.size()) / rows;
  args.rows = rows;
  args.width = width;
  args.output = spec;
  return args;
}

std::vector<QuantSpec> dynamic_specs() {
  std::vector<QuantSpec> specs;
  for (DType dtype : {DType::F8E4M3, DType::F8E5M2}) {
    for (ScaleTile tile : {ScaleTile::row(), ScaleTile::group(1), ScaleTile::group(7),
                           ScaleTile::group(32), ScaleTile::group(64), ScaleTile::group(128),
                           ScaleTile{1, 128, 0, 40}, ScaleTile{1, 48, 0, 47}}) {
      for (DType scale : {DType::F32, DType::F8E8M0}) {
        specs.push_back({dtype, tile, scale, ScaleTiming::Dynamic});
      }
    }
  }
  return specs;
}

// All bfloat16 values, and float32 values on both sides of every tie between two E4M3 or E5M2
// codes.
std::vector<float> values_near_ties() {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    values.push_back(bf16_to_f32(static_cast<uint16_t>(bits)));
  }
  for (DType dtype : {DType::F8E4M3, DType::F8E5M2}) {
    for (int code = 0; code < 127; ++code) {
      const float low = f8_table(dtype)[static_cast<size_t>(code)];
      const float high = f8_table(dtype)[static_cast<size_t>(code + 1)];
      if (!std::isfinite(low) || !std::isfinite(high)) continue;
      const float tie = (low + high) / 2;
      for (float v : {tie, std::nextafterf(tie, 0), std::nextafterf(tie, 1e9F)}) {
        values.push_back(v);
        values.push_back(-v);
      }
    }
  }
  return values;
}

TEST_P(QuantizeConformance, GivesTheFormulasBytesForEveryBfloat16AndEveryTie) {
  std::vector<float> x = values_near_ties();
  for (DType dtype : {DType::F8E4M3, DType::F8E5M2, DType::BF16}) {
    for (float scale : {1.0F, 0.0371F, 3.0F, 1e-6F}) {
      const QuantSpec spec{.dtype = dtype};
      const auto width = static_cast<int64_t>(x.size());
      if (!refused({spec, width}).empty()) continue;
      Quantize::Args args = rows_of(x, 1, width, spec);
      args.static_scale = &scale;
      expect_same(quantized(kernel(), args, 2), expected(args), args,
                  std::string(kernel().name) + " " + to_string(spec));
    }
  }
}

TEST_P(QuantizeConformance, GivesTheFormulasBytesForDynamicTilesOfEveryShape) {
  int taken = 0;
  for (const QuantSpec& spec : dynamic_specs()) {
    for (int64_t width : kWidths) {
      if (!refused({spec, width}).empty()) continue;
      ++taken;
      Random random(51);
      std::vector<float> x = random.bells(kRows * (width + 5));
      const auto row = [&](int64_t r) { return x.data() + r * (width + 5); };
      // Rows whose scales are zero, subnormal, huge; a dead tile beside a live one.
      for (int64_t i = 0; i < width; ++i) {
        row(1)[i] = i % 2 == 0 ? 0.0F : -0.0F;
        row(2)[i] *= 0x1p-140F;
        row(3)[i] *= 0x1p+120F;
        row(4)[i] = i < width / 2 ? 0.0F : row(4)[i];
        row(5)[i] *= 0x1p-149F;
      }
      const Quantize::Args args = rows_of(x, kRows, width, spec);
      expect_same(quantized(kernel(), args, 2), expected(args), args,
                  std::string(kernel().name) + " " + to_string(spec));
    }
  }
  EXPECT_GT(taken, 0);
}

TEST_P(QuantizeConformance, LetsValuesThatAreNotFiniteReachTheCodes) {
  for (const QuantSpec& spec : dynamic_specs()) {
    const int64_t width = 100;
    if (!refused({spec, width}).empty()) continue;
    for (float poison :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      std::vector<float> x = Random(52).bells(width);
      x[71] = poison;
      const Quantize::Args args = rows_of(x, 1, width, spec);
      const Quantized got = quantized(kernel(), args, 1);
      expect_same(got, expected(args), args, std::string(kernel().name) + " " + to_string(spec));
      EXPECT_TRUE(std::isnan(f8_table(spec.dtype)[got.codes[71]]));
    }
  }
}

TEST_P(QuantizeConformance, GivesARowTheSameBytesWhateverThreadsAndBatch) {
  for (const QuantSpec& spec : dynamic_specs()) {
    const int64_t width = 300;
    if (!refused({spec, width}).empty()) continue;
    const std::vector<float> x = Random(53).bells(9 * 310);
    const Quantize::Args args = rows_of(x, 9, width, spec);
    const Quantized all = quantized(kernel(), args, 3);
    const auto tiles = static_cast<size_t>(spec.tile.tile_cols(width));
    for (int64_t row = 0; row < 9; ++row) {
      Quantize::Args one = args;
      one.x += row * args.x_stride;
      one.rows = 1;
      const Quantized single = quantized(kernel(), one, 1);
      EXPECT_EQ(std::memcmp(single.codes.data(), all.codes.data() + row * width, 300), 0);
      EXPECT_EQ(
          std::memcmp(single.scales.data(), all.scales.data() + static_cast<size_t>(row) * tiles,
                      tiles * sizeof(float)),
          0);
    }
  }
}

TEST_P(QuantizeConformance, RefusesTilesItDoesNotDeclare) {
  const QuantSpec blocks{DType::F8E4M3, ScaleTile::block(128, 128), DType::F32,
                         ScaleTiming::Dynamic};
  const std::vector<Refusal> no = refused({blocks, 256});
  ASSERT_EQ(no.size(), 1U);
  EXPECT_EQ(no[0].code, RefusalCode::ActivationScale);
}

INSTANTIATE_TEST_SUITE_P(Kernels, QuantizeConformance, testing::ValuesIn(runnable<Quantize>()),
                         QuantizeConformance::parameter_name);

}  // namespace
}  // namespace octet::conformance
