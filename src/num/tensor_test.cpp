#include "num/tensor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/error.h"
#include "num/bf16.h"
#include "num/f8.h"

namespace octet {
namespace {

TEST(Shape, CountsItsElements) {
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ((Shape{2, 3, 4}).elements(), 24);
  EXPECT_EQ((Shape{2, 0}).elements(), 0);
  EXPECT_EQ(to_string(Shape{2, 3}), "[2, 3]");
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_NE((Shape{2, 1}), (Shape{2}));
}

// An [n, k] record of E4M3 codes and F32 scales that are all different.
struct Record {
  Record(int64_t n, int64_t k, ScaleTile tile)
      : codes(static_cast<size_t>(n * k)),
        scales(static_cast<size_t>(tile.tile_rows(n) * tile.tile_cols(k))),
        bias(static_cast<size_t>(n)) {
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i * 37 % 120);
    for (size_t i = 0; i < scales.size(); ++i) scales[i] = 1.0F + static_cast<float>(i);
    for (size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i) - 3;
    const auto bytes = [](const auto& v) { return reinterpret_cast<const std::byte*>(v.data()); };
    view.codes = {bytes(codes), DType::F8E4M3, {n, k}, k};
    view.scales = {
        bytes(scales), DType::F32, {tile.tile_rows(n), tile.tile_cols(k)}, tile.tile_cols(k)};
    view.bias = {bytes(bias), DType::F32, {n}, 0};
    view.has_bias = true;
    view.spec = {DType::F8E4M3, tile, DType::F32, ScaleTiming::Static};
  }

  std::vector<uint8_t> codes;
  std::vector<float> scales;
  std::vector<float> bias;
  QuantView view;
};

float value(const QuantView& view, int64_t r, int64_t c) {
  const ScaleTile& tile = view.spec.tile;
  return element(view.codes, r * view.codes.row_stride + c) *
         element(view.scales, tile.tile_row(r) * view.scales.row_stride + tile.tile_col(c));
}

class SliceTest : public testing::TestWithParam<ScaleTile> {};

TEST_P(SliceTest, EveryCutHasTheValuesOfTheWhole) {
  constexpr int64_t kN = 11;
  constexpr int64_t kK = 13;
  const Record whole(kN, kK, GetParam());
  for (int64_t r0 = 0; r0 < kN; ++r0) {
    for (int64_t r1 = r0 + 1; r1 <= kN; ++r1) {
      for (int64_t c0 = 0; c0 < kK; c0 += 2) {
        const QuantView part = slice(whole.view, {r0, r1}, {c0, kK - (kK - c0) / 3});
        ASSERT_EQ(part.n(), r1 - r0);
        for (int64_t r = 0; r < part.n(); ++r) {
          ASSERT_EQ(element(part.bias, r), whole.bias[static_cast<size_t>(r0 + r)]);
          for (int64_t c = 0; c < part.k(); ++c) {
            ASSERT_EQ(value(part, r, c), value(whole.view, r0 + r, c0 + c))
                << "rows from " << r0 << " cols from " << c0 << " at " << r << "," << c;
          }
        }
      }
    }
  }
}

TEST_P(SliceTest, ACutOfACutEqualsOneCut) {
  const Record whole(11, 13, GetParam());
  const QuantView twice = slice(slice(whole.view, {2, 10}, {1, 12}), {3, 7}, {4, 9});
  const QuantView once = slice(whole.view, {5, 9}, {5, 10});
  EXPECT_EQ(twice.spec, once.spec);
  EXPECT_EQ(twice.codes.data, once.codes.data);
  EXPECT_EQ(twice.scales.data, once.scales.data);
  EXPECT_EQ(twice.scales.shape, once.scales.shape);
}

INSTANTIATE_TEST_SUITE_P(Tiles, SliceTest,
                         testing::Values(ScaleTile::tensor(), ScaleTile::row(), ScaleTile::group(4),
                                         ScaleTile::group(5), ScaleTile::block(4, 4),
                                         ScaleTile::block(3, 7), ScaleTile::block(100, 100)),
                         [](const auto& tile) { return to_string(tile.param); });

TEST(Slice, TheGridCoversTheCutAndNoMore) {
  const Record whole(256, 384, ScaleTile::block(128, 128));
  const QuantView part = slice(whole.view, {192, 256}, {192, 384});  // B03: half a block column
  EXPECT_EQ(part.scales.shape, (Shape{1, 2}));
  EXPECT_EQ(part.spec.tile.first_row, 64);
  EXPECT_EQ(part.spec.tile.first_col, 64);
}

TEST(Slice, AnEmptyCutIsEmpty) {
  const Record whole(8, 8, ScaleTile::block(4, 4));
  const QuantView part = slice(whole.view, {3, 3}, {0, 8});
  EXPECT_EQ(part.n(), 0);
  EXPECT_EQ(part.bias.shape.elements(), 0);
}

TEST(Slice, HeadersOnlyViewsStayWithoutData) {
  Record whole(8, 8, ScaleTile::block(4, 4));
  whole.view.codes.data = whole.view.scales.data = whole.view.bias.data = nullptr;
  const QuantView part = slice(whole.view, {1, 5}, {2, 8});
  EXPECT_EQ(part.codes.data, nullptr);
  EXPECT_EQ(part.scales.data, nullptr);
  EXPECT_EQ(part.bias.data, nullptr);
}

TEST(Slice, ARangeOutsideIsABug) {
  const Record whole(8, 8, ScaleTile::row());
  EXPECT_THROW(slice(whole.view, {0, 9}, {0, 8}), Error);
  EXPECT_THROW(slice(whole.view, {0, 8}, {-1, 8}), Error);
  EXPECT_THROW(slice(whole.view, {5, 4}, {0, 8}), Error);
}

TEST(Element, ReadsEveryFloatTypeAtAnyAddress) {
  std::byte bytes[9] = {};
  const auto at = [&](DType dtype) {
    return element(ConstTensorView{bytes + 1, dtype, Shape{1}, 0}, 0);
  };
  const float f = 1.5F;
  std::memcpy(bytes + 1, &f, sizeof f);
  EXPECT_EQ(at(DType::F32), 1.5F);
  const uint16_t b = f32_to_bf16(-2.5F);
  std::memcpy(bytes + 1, &b, sizeof b);
  EXPECT_EQ(at(DType::BF16), -2.5F);
  const uint16_t h = f32_to_f16(0.125F);
  std::memcpy(bytes + 1, &h, sizeof h);
  EXPECT_EQ(at(DType::F16), 0.125F);
  bytes[1] = std::byte{0x7E};
  EXPECT_EQ(at(DType::F8E4M3), 448.0F);
  bytes[1] = std::byte{0x7B};
  EXPECT_EQ(at(DType::F8E5M2), 57344.0F);
  bytes[1] = std::byte{130};
  EXPECT_EQ(at(DType::F8E8M0), 8.0F);
  EXPECT_THROW(at(DType::I32), Error);
}

}  // namespace
}  // namespace octet
