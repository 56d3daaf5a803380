#include "num/quant_spec.h"

#include <gtest/gtest.h>

#include <vector>

namespace octet {
namespace {

constexpr ScaleTile shifted(ScaleTile tile, Extent row, Extent col) {
  tile.first_row = row;
  tile.first_col = col;
  return tile;
}

TEST(ScaleTile, OneFormulaServesEveryGranularity) {
  EXPECT_EQ(ScaleTile::tensor().tile_row(1'000'000), 0);
  EXPECT_EQ(ScaleTile::tensor().tile_col(1'000'000), 0);
  EXPECT_EQ(ScaleTile::row().tile_row(17), 17);
  EXPECT_EQ(ScaleTile::row().tile_col(17), 0);
  EXPECT_EQ(ScaleTile::group(32).tile_row(5), 5);
  EXPECT_EQ(ScaleTile::group(32).tile_col(63), 1);
  EXPECT_EQ(ScaleTile::block(128, 64).tile_row(127), 0);
  EXPECT_EQ(ScaleTile::block(128, 64).tile_row(128), 1);
  EXPECT_EQ(ScaleTile::block(128, 64).tile_col(64), 1);
}

TEST(ScaleTile, KnowsItsGranularity) {
  EXPECT_EQ(ScaleTile::tensor().granularity(), Granularity::Tensor);
  EXPECT_EQ(ScaleTile::row().granularity(), Granularity::Row);
  EXPECT_EQ(ScaleTile::group(128).granularity(), Granularity::Group);
  EXPECT_EQ(ScaleTile::block(128, 128).granularity(), Granularity::Block);
  EXPECT_EQ(ScaleTile::block(1, 128).granularity(), Granularity::Group);
  EXPECT_EQ(ScaleTile::block(4, kWhole).granularity(), Granularity::Block);
}

TEST(ScaleTile, PartialTilesCount) {
  const ScaleTile block = ScaleTile::block(128, 128);
  EXPECT_EQ(block.tile_rows(200), 2);  // B01: the last block is partial
  EXPECT_EQ(block.tile_cols(300), 3);
  EXPECT_EQ(block.tile_rows(256), 2);
  EXPECT_EQ(block.tile_rows(1), 1);
  EXPECT_EQ(block.tile_rows(0), 0);
  EXPECT_EQ(ScaleTile::tensor().tile_rows(7), 1);
  EXPECT_EQ(ScaleTile::row().tile_rows(7), 7);
}

TEST(ScaleTile, AFirstElementInsideATileShiftsTheGrid) {
  const ScaleTile cut = shifted(ScaleTile::block(128, 128), 64, 0);  // B03
  EXPECT_EQ(cut.tile_row(63), 0);
  EXPECT_EQ(cut.tile_row(64), 1);
  EXPECT_EQ(cut.tile_rows(64), 1);
  EXPECT_EQ(cut.tile_rows(65), 2);
  EXPECT_EQ(cut.tile_rows(192), 2);
}

// What refinement means, from its words: every tile of `fine` lies in one tile of `coarse`.
bool refines_by_elements(const ScaleTile& coarse, const ScaleTile& fine, int64_t n, int64_t k) {
  std::vector<int64_t> row_of(static_cast<size_t>(fine.tile_rows(n)), -1);
  std::vector<int64_t> col_of(static_cast<size_t>(fine.tile_cols(k)), -1);
  for (int64_t r = 0; r < n; ++r) {
    int64_t& tile = row_of[static_cast<size_t>(fine.tile_row(r))];
    if (tile >= 0 && tile != coarse.tile_row(r)) return false;
    tile = coarse.tile_row(r);
  }
  for (int64_t c = 0; c < k; ++c) {
    int64_t& tile = col_of[static_cast<size_t>(fine.tile_col(c))];
    if (tile >= 0 && tile != coarse.tile_col(c)) return false;
    tile = coarse.tile_col(c);
  }
  return true;
}

TEST(Refines, AgreesWithItsDefinitionOnEveryPair) {
  std::vector<ScaleTile> tiles{ScaleTile::tensor(), ScaleTile::row()};
  for (const Extent size : {1, 2, 3, 4, 6, 8}) {
    tiles.push_back(ScaleTile::group(size));
    tiles.push_back(ScaleTile::block(size, kWhole));
    for (const Extent cols : {2, 4, 6}) {
      const ScaleTile block = ScaleTile::block(size, cols);
      tiles.push_back(block);
      tiles.push_back(shifted(block, size / 2, cols / 2));
      tiles.push_back(shifted(block, 0, 1));
    }
  }
  for (const ScaleTile& coarse : tiles) {
    for (const ScaleTile& fine : tiles) {
      EXPECT_EQ(refines(coarse, fine), refines_by_elements(coarse, fine, 96, 96))
          << to_string(coarse) << " -> " << to_string(fine);
    }
  }
}

TEST(Refines, TheUsualChains) {
  EXPECT_TRUE(refines(ScaleTile::tensor(), ScaleTile::row()));
  EXPECT_TRUE(refines(ScaleTile::row(), ScaleTile::group(128)));
  EXPECT_TRUE(refines(ScaleTile::block(128, 128), ScaleTile::group(128)));
  EXPECT_TRUE(refines(ScaleTile::block(128, 128), ScaleTile::group(32)));
  EXPECT_FALSE(refines(ScaleTile::block(128, 128), ScaleTile::row()));
  EXPECT_FALSE(refines(ScaleTile::group(128), ScaleTile::block(128, 128)));
  EXPECT_FALSE(refines(ScaleTile::row(), ScaleTile::tensor()));
  EXPECT_FALSE(refines(ScaleTile::block(128, 100), ScaleTile::group(32)));
}

TEST(ToString, SpellsSpecsAsPlansPrintThem) {
  EXPECT_EQ(to_string(ScaleTile::tensor()), "tensor");
  EXPECT_EQ(to_string(ScaleTile::row()), "row");
  EXPECT_EQ(to_string(ScaleTile::group(32)), "group32");
  EXPECT_EQ(to_string(ScaleTile::block(128, 64)), "block128x64");
  EXPECT_EQ(to_string(ScaleTile::block(128, kWhole)), "block128xK");
  EXPECT_EQ(to_string(shifted(ScaleTile::block(128, 64), 64, 32)), "block128x64+64,32");
  const QuantSpec spec{DType::F8E4M3, ScaleTile::block(128, 128), DType::BF16, ScaleTiming::Static};
  EXPECT_EQ(to_string(spec), "f8e4m3/block128x128/bf16/static");
  EXPECT_EQ(to_string(QuantSpec{}), "bf16");
}

}  // namespace
}  // namespace octet
