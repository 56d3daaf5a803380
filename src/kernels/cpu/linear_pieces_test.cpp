#include "kernels/cpu/linear_pieces.h"

#include <gtest/gtest.h>

#include <vector>

namespace octet {
namespace {

LinearProblem problem_of(int64_t k, const ScaleTile& weight, std::optional<ScaleTile> input) {
  LinearProblem problem{.scheme = SchemeId::W8A16, .n = 1, .k = k};
  problem.weight = {.dtype = DType::F8E4M3, .tile = weight};
  if (input) problem.activation = QuantSpec{.dtype = DType::F8E4M3, .tile = *input};
  return problem;
}

std::vector<LinearProblem> problems() {
  std::vector<LinearProblem> all;
  for (int64_t k : {1, 63, 64, 65, 128, 577, 2048, 2049, 5000}) {
    for (const ScaleTile& weight :
         {ScaleTile::row(), ScaleTile::group(1), ScaleTile::group(7), ScaleTile::group(32),
          ScaleTile::block(128, 128), ScaleTile{1, 128, 0, 37}, ScaleTile{1, 64, 0, 63}}) {
      all.push_back(problem_of(k, weight, std::nullopt));
      all.push_back(problem_of(k, weight, ScaleTile::group(96)));
    }
  }
  return all;
}

std::vector<Piece> pieces_of(const LinearProblem& problem, int64_t span_chunks) {
  std::vector<Piece> pieces(static_cast<size_t>(piece_bound(problem, span_chunks)));
  const int64_t count = make_pieces(problem, span_chunks, pieces.data());
  EXPECT_LE(count, static_cast<int64_t>(pieces.size()));
  pieces.resize(static_cast<size_t>(count));
  return pieces;
}

uint64_t mask_of(const Piece& piece, int64_t chunk) {
  if (chunk == piece.chunk) return piece.first_mask;
  return chunk == piece.chunk + piece.chunks - 1 ? piece.last_mask : kWholeChunk;
}

TEST(LinearPieces, CoverEveryColumnOnceWithItsOwnScales) {
  for (const LinearProblem& problem : problems()) {
    std::vector<int> seen(static_cast<size_t>(chunks_of(problem.k) * kChunk));
    for (const Piece& piece : pieces_of(problem, 16)) {
      for (int64_t c = piece.chunk; c < piece.chunk + piece.chunks; ++c) {
        for (int64_t bit = 0; bit < kChunk; ++bit) {
          if ((mask_of(piece, c) >> bit & 1) == 0) continue;
          const int64_t column = c * kChunk + bit;
          ++seen[static_cast<size_t>(column)];
          ASSERT_LT(column, problem.k);
          ASSERT_EQ(piece.weight_col, problem.weight.tile.tile_col(column));
          if (problem.activation) {
            ASSERT_EQ(piece.input_col, problem.activation->tile.tile_col(column));
          }
        }
      }
    }
    for (int64_t k = 0; k < problem.k; ++k) ASSERT_EQ(seen[static_cast<size_t>(k)], 1) << k;
  }
}

TEST(LinearPieces, SpansHoldNoMoreChunksThanAPanel) {
  for (const LinearProblem& problem : problems()) {
    for (int64_t span_chunks : {1, 4, 32}) {
      const std::vector<Piece> pieces = pieces_of(problem, span_chunks);
      int64_t chunks = 0;
      for (const Piece& piece : pieces) {
        ASSERT_GE(piece.chunks, 1);
        chunks += piece.chunks;
        ASSERT_LE(chunks, span_chunks);
        if (piece.ends_span) chunks = 0;
      }
      ASSERT_TRUE(pieces.back().ends_span);
    }
  }
}

TEST(LinearPieces, OneScaleForARowIsOnePieceASpan) {
  const LinearProblem problem = problem_of(5000, ScaleTile::row(), std::nullopt);
  const std::vector<Piece> pieces = pieces_of(problem, 32);
  ASSERT_EQ(pieces.size(), 3U);
  for (const Piece& piece : pieces) EXPECT_TRUE(piece.ends_span);
  EXPECT_EQ(pieces.back().chunks, chunks_of(5000) - 64);
  EXPECT_EQ(pieces.back().last_mask, kWholeChunk >> (kChunk - 5000 % kChunk));
}

}  // namespace
}  // namespace octet
