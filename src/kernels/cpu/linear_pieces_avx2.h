#pragma once
// K as the AVX2 kernels walk it. Scales of groups of the input are multiplied into the input while
// it is put in order, so a segment is a stretch with one weight scale. A piece is a part of a
// segment; each begins a new step of 32 columns, so a segment whose length is no multiple of 32
// ends in a padded one. Pieces that are decoded together make a chunk. All follow from the problem
// alone: the order of sums depends on neither tokens nor threads.
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/f8_avx2.h"
#include "kernels/cpu/linear_segments.h"

namespace octet::avx2 {

// 16 steps: four decoded rows of 512 columns are 8 KiB, a quarter of the smallest L1.
inline constexpr int64_t kChunkSteps = 16;

struct Piece {
  int64_t k = 0;           // first column
  int64_t length = 0;      // columns, at least 1, at most kChunkSteps * kStep
  int64_t steps = 0;       // ceil(length / kStep)
  int64_t whole = 0;       // columns in whole steps
  int64_t rest = 0;        // columns after them
  int64_t weight_col = 0;  // column of the weight's scale grid
  bool begins = false;     // the first piece of its segment
  bool ends = false;       // the last piece of its segment
};

struct Chunk {
  int64_t piece_begin = 0, piece_end = 0;
  int64_t steps = 0;   // of its pieces, at most kChunkSteps
  int64_t x_step = 0;  // steps of all chunks before it
};

// How K falls apart.
struct Pieces {
  int64_t pieces = 0;
  int64_t chunks = 0;
  int64_t steps = 0;
};

// The problem as the segments of its weight see it.
inline LinearProblem without_input_scales(LinearProblem problem) {
  problem.activation.reset();
  return problem;
}

// Writes pieces and chunks of a problem in order of K, or only counts them when both are null.
inline Pieces make_pieces(const LinearProblem& problem, Piece* pieces, Chunk* chunks) {
  Pieces count;
  Chunk chunk;
  Segments walk(without_input_scales(problem));
  for (Segment s; walk.next(s);) {
    for (int64_t k = s.begin; k < s.end; k += kChunkSteps * kStep) {
      Piece piece;
      piece.k = k;
      piece.length = s.end - k < kChunkSteps * kStep ? s.end - k : kChunkSteps * kStep;
      piece.steps = (piece.length + kStep - 1) / kStep;
      piece.whole = piece.length / kStep * kStep;
      piece.rest = piece.length - piece.whole;
      piece.weight_col = s.weight_col;
      piece.begins = k == s.begin;
      piece.ends = k + piece.length == s.end;
      if (count.chunks == 0 || chunk.steps + piece.steps > kChunkSteps) {
        chunk = {count.pieces, count.pieces, 0, count.steps};
        ++count.chunks;
      }
      if (pieces != nullptr) pieces[count.pieces] = piece;
      chunk.piece_end = ++count.pieces;
      chunk.steps += piece.steps;
      count.steps += piece.steps;
      if (chunks != nullptr) chunks[count.chunks - 1] = chunk;
    }
  }
  return count;
}

// Tokens as tiles of nearly equal size, so that no tile is thin: tile t holds tokens [first(t),
// first(t + 1)), the larger tiles come first.
struct Tiles {
  Tiles(int64_t tokens, int64_t largest)
      : m(tokens),
        count((tokens + largest - 1) / largest),
        smaller(count == 0 ? 0 : tokens / count),
        larger(tokens - smaller * count) {}
  int64_t first(int64_t tile) const { return tile * smaller + (tile < larger ? tile : larger); }
  int64_t size(int64_t tile) const { return smaller + (tile < larger ? 1 : 0); }

  int64_t m;
  int64_t count;
  int64_t smaller;  // tokens of a smaller tile
  int64_t larger;   // number of tiles with one token more
};

// Blocking of one call, and where its parts lie in the scratch: offsets in bytes, multiples of 64.
struct Plan {
  Plan(const LinearProblem& problem, int64_t tokens, int thread_count)
      : m(tokens),
        threads(thread_count),
        k(make_pieces(problem, nullptr, nullptr)),
        tiles(tokens, tokens <= kStreamTokens ? 4 : 3) {
    chunks_at = align(static_cast<size_t>(k.pieces) * sizeof(Piece));
    x_at = chunks_at + align(static_cast<size_t>(k.chunks) * sizeof(Chunk));
    threads_at = x_at + align(static_cast<size_t>(m * k.steps * kStep) * sizeof(float));
    if (streams()) return;
    // Sums of a segment outlive a piece and totals outlive a segment: only where both happen must
    // they be kept apart.
    const SegmentCount segments = count_segments(without_input_scales(problem));
    const bool apart = segments.segments > 1 && segments.longest > kChunkSteps * kStep;
    const int64_t tokens_of_block = m < kBlockTokens ? m : kBlockTokens;
    const size_t sums =
        align(static_cast<size_t>(tokens_of_block * kPanelRows * 8) * sizeof(float));
    lanes_at = align(static_cast<size_t>(kPanelRows * kChunkSteps * kStep) * sizeof(float));
    totals_at = lanes_at + (apart ? sums : 0);
    thread_bytes = totals_at + sums;
  }

  // Weights are decoded into the FMA and not kept.
  bool streams() const { return m <= kStreamTokens; }
  size_t bytes() const { return threads_at + static_cast<size_t>(threads) * thread_bytes; }

  // Decoding a row again for every four tokens costs less than keeping it, up to here.
  static constexpr int64_t kStreamTokens = 8;
  // Rows decoded for each block of tokens: the block's x comes from L2 once for every four.
  static constexpr int64_t kPanelRows = 24;
  // 192 tokens x 512 columns are 384 KiB of x in L2; decoding is then 2-3 % of the arithmetic.
  static constexpr int64_t kBlockTokens = 144;

  int64_t m;
  int threads;
  Pieces k;
  Tiles tiles;
  size_t chunks_at = 0;
  size_t x_at = 0;
  size_t threads_at = 0;               // of the first thread's part
  size_t thread_bytes = 0;             // of each thread's part: panel, lane sums, totals
  size_t lanes_at = 0, totals_at = 0;  // within a thread's part

 private:
  static constexpr size_t align(size_t bytes) { return (bytes + 63) & ~size_t{63}; }
};

}  // namespace octet::avx2
