#include "kernels/cpu/linear_segments.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/cpu/linear_pieces_avx2.h"

namespace octet {
namespace {

// Problems whose weight and input tiles meet at equal, nested, coprime and no edges, whole and cut.
std::vector<LinearProblem> problems() {
  std::vector<LinearProblem> result;
  for (int64_t k : {1, 5, 31, 32, 33, 100, 512, 513, 4100}) {
    for (Extent weight : {kWhole, Extent{1}, Extent{7}, Extent{32}, Extent{128}, Extent{1000}}) {
      for (Extent input : {kWhole, Extent{5}, Extent{32}, Extent{48}, Extent{700}}) {
        LinearProblem p{.scheme = SchemeId::W8A8, .n = 3, .k = k};
        p.weight = {.dtype = DType::F8E4M3, .tile = ScaleTile::block(2, weight)};
        p.activation = QuantSpec{.dtype = DType::F8E4M3, .tile = ScaleTile::group(input)};
        if (weight != kWhole) p.weight.tile.first_col = weight / 3;
        if (input != kWhole) p.activation->tile.first_col = input / 2;
        result.push_back(p);
      }
    }
  }
  return result;
}

std::string describe(const LinearProblem& p) {
  return to_string(p.weight) + " x " + to_string(*p.activation) + " K=" + std::to_string(p.k);
}

TEST(Segments, CoverKInOrderAndAreCutWhereAScaleChangesAndNowhereElse) {
  for (const LinearProblem& p : problems()) {
    int64_t k = 0;
    Segments walk(p);
    for (Segment s; walk.next(s);) {
      ASSERT_EQ(s.begin, k) << describe(p);
      ASSERT_GT(s.end, s.begin) << describe(p);
      for (; k < s.end; ++k) {
        ASSERT_EQ(s.weight_col, p.weight.tile.tile_col(k)) << describe(p) << " at " << k;
        ASSERT_EQ(s.input_col, p.activation->tile.tile_col(k)) << describe(p) << " at " << k;
      }
      const bool changes = k == p.k || p.weight.tile.tile_col(k) != s.weight_col ||
                           p.activation->tile.tile_col(k) != s.input_col;
      ASSERT_TRUE(changes) << describe(p) << " ends a segment at " << k;
    }
    ASSERT_EQ(k, p.k) << describe(p);
  }
}

TEST(Segments, TheTilesOfAPlainWeightMeanNothing) {
  LinearProblem p{.n = 2, .k = 300, .weight = {.dtype = DType::BF16, .tile = ScaleTile::group(7)}};
  const SegmentCount count = count_segments(p);
  EXPECT_EQ(count.segments, 1);
  EXPECT_EQ(count.longest, 300);
}

TEST(Avx2Pieces, CoverEverySegmentOfTheWeightAndFillChunks) {
  for (const LinearProblem& p : problems()) {
    std::vector<avx2::Piece> pieces(static_cast<size_t>(p.k));
    std::vector<avx2::Chunk> chunks(static_cast<size_t>(p.k));
    const avx2::Pieces count = avx2::make_pieces(p, pieces.data(), chunks.data());
    ASSERT_EQ(count.steps, avx2::make_pieces(p, nullptr, nullptr).steps) << describe(p);
    int64_t k = 0, next = 0, steps = 0;
    for (int64_t c = 0; c < count.chunks; ++c) {
      const avx2::Chunk& chunk = chunks[static_cast<size_t>(c)];
      ASSERT_EQ(chunk.piece_begin, next) << describe(p);
      ASSERT_EQ(chunk.x_step, steps) << describe(p);
      ASSERT_LE(chunk.steps, avx2::kChunkSteps) << describe(p);
      for (; next < chunk.piece_end; ++next) {
        const avx2::Piece& piece = pieces[static_cast<size_t>(next)];
        ASSERT_EQ(piece.k, k) << describe(p);
        ASSERT_EQ(piece.weight_col, p.weight.tile.tile_col(k)) << describe(p);
        ASSERT_EQ(piece.begins, k == 0 || p.weight.tile.tile_col(k - 1) != piece.weight_col);
        ASSERT_EQ(piece.whole + piece.rest, piece.length) << describe(p);
        k += piece.length;
        steps += piece.steps;
        ASSERT_EQ(p.weight.tile.tile_col(k - 1), piece.weight_col) << describe(p);
        ASSERT_EQ(piece.ends, k == p.k || p.weight.tile.tile_col(k) != piece.weight_col);
      }
      ASSERT_EQ(steps - chunk.x_step, chunk.steps) << describe(p);
    }
    ASSERT_EQ(k, p.k) << describe(p);
    ASSERT_EQ(next, count.pieces) << describe(p);
  }
}

TEST(Avx2Tiles, AreNearlyEqualAndNeverThin) {
  for (int64_t m = 1; m < 100; ++m) {
    for (int64_t largest : {3, 4}) {
      const avx2::Tiles tiles(m, largest);
      EXPECT_EQ(tiles.first(0), 0);
      EXPECT_EQ(tiles.first(tiles.count), m);
      for (int64_t t = 0; t < tiles.count; ++t) {
        EXPECT_EQ(tiles.size(t), tiles.first(t + 1) - tiles.first(t));
        EXPECT_LE(tiles.size(t), largest);
        EXPECT_GE(tiles.size(t), m == 1 ? 1 : 2) << m << " tokens";
      }
    }
  }
}

}  // namespace
}  // namespace octet
