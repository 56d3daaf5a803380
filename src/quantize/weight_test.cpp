#include "quantize/weight.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "num/bf16.h"
#include "num/f8.h"
#include "testing/tiny_checkpoint.h"

namespace octet {
namespace {

// A matrix of `dtype` with rows `stride` elements apart; what lies between them is NaN.
class Matrix {
 public:
  Matrix(DType dtype, int64_t rows, int64_t cols, const std::vector<float>& values,
         int64_t stride = 0)
      : dtype_(dtype), rows_(rows), cols_(cols), stride_(stride == 0 ? cols : stride) {
    bytes_.assign(static_cast<size_t>(rows_ * stride_ * bytes_of(dtype)), std::byte{0xFF});
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) put(r, c, values[static_cast<size_t>(r * cols + c)]);
    }
  }

  void put(int64_t r, int64_t c, float value) {
    std::byte* to = bytes_.data() + (r * stride_ + c) * bytes_of(dtype_);
    if (dtype_ == DType::F32) {
      std::memcpy(to, &value, sizeof value);
      return;
    }
    const uint16_t bits = dtype_ == DType::BF16 ? f32_to_bf16(value) : f32_to_f16(value);
    std::memcpy(to, &bits, sizeof bits);
  }
  ConstTensorView view() const { return {bytes_.data(), dtype_, Shape{rows_, cols_}, stride_}; }

 private:
  DType dtype_;
  int64_t rows_, cols_, stride_;
  std::vector<std::byte> bytes_;
};

QuantizedWeight quantized(const Matrix& matrix, const ScaleTile& tile, int threads = 1) {
  ThreadPool pool(threads);
  return quantize_weight(matrix.view(), tile, pool);
}

float scale_at(const QuantizedWeight& weight, DType dtype, int64_t i) {
  return element({weight.scales.data(), dtype, weight.scale_shape, 0}, i);
}

std::vector<float> normals(int64_t count, uint64_t seed) {
  TinyRandom random(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = random.normal();
  return values;
}

TEST(QuantizeWeight, ScaleIsTheLargestMagnitudeOver448RoundedToTheDtype) {
  const std::vector<float> values{1.0F, -3.5F, 0.25F, 2.0F};
  EXPECT_EQ(scale_at(quantized(Matrix(DType::F32, 1, 4, values), ScaleTile::row()), DType::F32, 0),
            3.5F / 448);
  EXPECT_EQ(
      scale_at(quantized(Matrix(DType::BF16, 1, 4, values), ScaleTile::row()), DType::BF16, 0),
      round_to_bf16(3.5F / 448));
  EXPECT_EQ(scale_at(quantized(Matrix(DType::F16, 1, 4, values), ScaleTile::row()), DType::F16, 0),
            f16_to_f32(f32_to_f16(3.5F / 448)));
}

TEST(QuantizeWeight, RoundsTheQuotientToTheDtypeBeforeItsCode) {
  // With the scale 1 that 448 gives, 1.0625 + 2^-9 is nearer to 1.125 than to 1 in float32; in
  // bfloat16 it is stored as 1.0625, the tie, which goes to the even 1.
  const std::vector<float> values{448.0F, 1.0625F + 0x1p-9F};
  const auto f32 = quantized(Matrix(DType::F32, 1, 2, values), ScaleTile::tensor());
  EXPECT_EQ(f8e4m3_to_f32(f32.codes[1]), 1.125F);
  const auto bf16 = quantized(Matrix(DType::BF16, 1, 2, values), ScaleTile::tensor());
  EXPECT_EQ(f8e4m3_to_f32(bf16.codes[1]), 1.0F);

  // Rounding a quotient to bfloat16 puts some on a tie between two codes.
  const float scale = round_to_bf16(300.0F / 448);
  int moved = 0;
  for (float w = 1; w < 300; ++w) {
    const float stored = round_to_bf16(w);
    const auto got = quantized(Matrix(DType::BF16, 1, 2, {300, stored}), ScaleTile::row());
    EXPECT_EQ(got.codes[1], f32_to_f8e4m3(round_to_bf16(stored / scale))) << w;
    moved += got.codes[1] != f32_to_f8e4m3(stored / scale) ? 1 : 0;
  }
  EXPECT_GT(moved, 0);
}

TEST(QuantizeWeight, GivesEveryTileItsOwnScaleAndShortOnesAtTheEdges) {
  const std::vector<float> values = normals(5 * 7, 3);
  const ScaleTile tile = ScaleTile::block(2, 3);
  const QuantizedWeight got = quantized(Matrix(DType::F32, 5, 7, values), tile);
  EXPECT_EQ(got.scale_shape, (Shape{3, 3}));
  for (int64_t r = 0; r < 5; ++r) {
    for (int64_t c = 0; c < 7; ++c) {
      float amax = 0;
      for (int64_t i = 0; i < 35; ++i) {
        if (i / 7 / 2 != r / 2 || i % 7 / 3 != c / 3) continue;
        amax = std::max(amax, std::fabs(values[static_cast<size_t>(i)]));
      }
      const float scale = scale_at(got, DType::F32, r / 2 * 3 + c / 3);
      ASSERT_EQ(scale, amax / 448);
      const auto at = static_cast<size_t>(r * 7 + c);
      ASSERT_EQ(got.codes[at], f32_to_f8e4m3(values[at] / scale)) << r << "," << c;
    }
  }
}

TEST(QuantizeWeight, HasTheScaleShapesOfTheFormat) {
  const Matrix matrix(DType::BF16, 6, 6, normals(36, 4));
  EXPECT_EQ(quantized(matrix, ScaleTile::tensor()).scale_shape, (Shape{1}));
  EXPECT_EQ(quantized(matrix, ScaleTile::row()).scale_shape, (Shape{6, 1}));
  EXPECT_EQ(quantized(matrix, ScaleTile::group(4)).scale_shape, (Shape{6, 2}));
  EXPECT_EQ(quantized(matrix, ScaleTile::block(128, 128)).scale_shape, (Shape{1, 1}));
}

TEST(QuantizeWeight, ATileOfZerosGetsTheEpsilonOfItsDtype) {
  const std::vector<float> values{0, 0, 1, 2};
  for (const auto& [dtype, epsilon] :
       {std::pair{DType::F32, 0x1p-23F}, {DType::BF16, 0x1p-7F}, {DType::F16, 0x1p-10F}}) {
    const QuantizedWeight got = quantized(Matrix(dtype, 2, 2, values), ScaleTile::row());
    EXPECT_EQ(scale_at(got, dtype, 0), epsilon) << name(dtype);
    EXPECT_EQ(got.codes[0], 0);
    EXPECT_EQ(got.codes[3], f32_to_f8e4m3(448)) << name(dtype);
  }
}

TEST(QuantizeWeight, MakesMinusZeroPositiveWithATensorScaleOnly) {
  const Matrix matrix(DType::F32, 1, 2, {-0.0F, 1.0F});
  EXPECT_EQ(quantized(matrix, ScaleTile::tensor()).codes[0], 0x00);
  EXPECT_EQ(quantized(matrix, ScaleTile::row()).codes[0], 0x80);
}

TEST(QuantizeWeight, KeepsNanAndLeavesTheScaleToTheOthers) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const QuantizedWeight got =
      quantized(Matrix(DType::F32, 1, 3, {nan, 4.48F, -1}), ScaleTile::row());
  EXPECT_TRUE(std::isnan(f8e4m3_to_f32(got.codes[0])));
  EXPECT_EQ(scale_at(got, DType::F32, 0), 4.48F / 448);
}

TEST(QuantizeWeight, ReadsNothingBetweenTheRows) {
  const std::vector<float> values = normals(6 * 10, 5);
  const QuantizedWeight dense = quantized(Matrix(DType::BF16, 6, 10, values), ScaleTile::tensor());
  const QuantizedWeight gaps =
      quantized(Matrix(DType::BF16, 6, 10, values, 13), ScaleTile::tensor());
  EXPECT_EQ(dense.codes, gaps.codes);
  EXPECT_EQ(dense.scales, gaps.scales);
}

TEST(QuantizeWeight, GivesTheSameBytesWithAnyNumberOfThreads) {
  const Matrix matrix(DType::BF16, 70, 90, normals(70 * 90, 6));
  for (const ScaleTile& tile : {ScaleTile::tensor(), ScaleTile::row(), ScaleTile::block(16, 32)}) {
    const QuantizedWeight one = quantized(matrix, tile, 1);
    const QuantizedWeight three = quantized(matrix, tile, 3);
    EXPECT_EQ(one.codes, three.codes) << to_string(tile);
    EXPECT_EQ(one.scales, three.scales) << to_string(tile);
  }
}

TEST(ScaleBytes, AreTheSameFormulaForOneValue) {
  const QuantizedWeight weight =
      quantized(Matrix(DType::BF16, 1, 2, {-0.7F, 0.1F}), ScaleTile::tensor());
  EXPECT_EQ(scale_bytes(round_to_bf16(0.7F), DType::BF16), weight.scales);
  EXPECT_EQ(scale_bytes(0, DType::F32).size(), sizeof(float));
  EXPECT_EQ(element({scale_bytes(0, DType::F16).data(), DType::F16, Shape{1}, 0}, 0), 0x1p-10F);
}

}  // namespace
}  // namespace octet
