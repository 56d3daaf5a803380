#pragma once
// K as the AVX2 kernels walk it. A piece is a stretch of one scale segment that is decoded in one
// go; each begins a new step, so a segment whose length is no multiple of 32 ends in a padded one.
// The pieces follow from the problem alone: the order of sums depends on neither tokens nor
// threads.
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/f8_avx2.h"
#include "kernels/cpu/linear_segments.h"

namespace octet::avx2 {

// 16 steps: four decoded rows of 512 columns are 8 KiB, a third of the smallest L1.
inline constexpr int64_t kPieceSteps = 16;

struct Piece {
  int64_t k = 0;           // first column
  int64_t length = 0;      // columns, at least 1, at most kPieceSteps * kStep
  int64_t steps = 0;       // ceil(length / kStep)
  int64_t x_step = 0;      // steps of all pieces before it
  int64_t weight_col = 0;  // column of the weight's scale grid
  int64_t input_col = 0;   // column of the input's scale grid
  bool begins = false;     // the first piece of its segment
  bool ends = false;       // the last piece of its segment
};

// Number of pieces and of all their steps.
struct PieceCount {
  int64_t pieces = 0;
  int64_t steps = 0;
};

// Writes the pieces of a problem in order of K to `out`, or only counts them when it is null.
inline PieceCount make_pieces(const LinearProblem& problem, Piece* out) {
  PieceCount count;
  Segments walk(problem);
  for (Segment s; walk.next(s);) {
    for (int64_t k = s.begin; k < s.end; k += kPieceSteps * kStep) {
      Piece piece;
      piece.k = k;
      piece.length = s.end - k < kPieceSteps * kStep ? s.end - k : kPieceSteps * kStep;
      piece.steps = (piece.length + kStep - 1) / kStep;
      piece.x_step = count.steps;
      piece.weight_col = s.weight_col;
      piece.input_col = s.input_col;
      piece.begins = k == s.begin;
      piece.ends = k + piece.length == s.end;
      if (out != nullptr) out[count.pieces] = piece;
      ++count.pieces;
      count.steps += piece.steps;
    }
  }
  return count;
}

// Tokens as tiles of two or three (one or two where there are no more): tile t holds tokens
// [first(t), first(t + 1)), so that no tile is thin.
struct Tiles {
  explicit Tiles(int64_t tokens) : m(tokens), count((tokens + 2) / 3) {}
  int64_t first(int64_t tile) const { return m * tile / count; }
  int64_t size(int64_t tile) const { return first(tile + 1) - first(tile); }

  int64_t m;
  int64_t count;
};

// Blocking of one call, and where its parts lie in the scratch. All offsets are in bytes, from the
// beginning of the scratch, multiples of 64.
struct Plan {
  Plan(const LinearProblem& problem, int64_t tokens, int thread_count)
      : m(tokens), threads(thread_count), count(make_pieces(problem, nullptr)) {
    const SegmentCount segments = count_segments(problem);
    // Sums of a segment outlive a piece and totals outlive a segment: only when both happen must
    // they be kept apart.
    two_sums = segments.segments > 1 && segments.longest > kPieceSteps * kStep;
    panel_rows = tokens <= kFarTokens ? 4 : kPanelRows;
    block_tokens = tokens < kBlockTokens ? tokens : kBlockTokens;
    x_at = align(static_cast<size_t>(count.pieces) * sizeof(Piece));
    threads_at = x_at + align(static_cast<size_t>(m * count.steps * kStep) * sizeof(float));
    lanes_at = streams()
                   ? 0
                   : align(static_cast<size_t>(panel_rows * kPieceSteps * kStep) * sizeof(float));
    const auto lanes = static_cast<size_t>(block_tokens * panel_rows * 8) * sizeof(float);
    totals_at = lanes_at + (streams() || !two_sums ? 0 : align(lanes));
    thread_bytes = streams() ? 0 : totals_at + align(lanes);
  }

  // Weights are decoded into the FMA and not kept: one or two tokens.
  bool streams() const { return m <= 2; }
  size_t bytes() const { return threads_at + static_cast<size_t>(threads) * thread_bytes; }

  // Up to this many tokens the four rows of a quad are far apart and each is read to its end.
  static constexpr int64_t kFarTokens = 12;
  // Rows decoded for each block of tokens otherwise: the block's x comes from L2 four times.
  static constexpr int64_t kPanelRows = 16;
  // 192 tokens x 512 columns are 384 KiB of x in L2; decoding is then 2-3 % of the arithmetic.
  static constexpr int64_t kBlockTokens = 192;

  int64_t m;
  int threads;
  PieceCount count;
  bool two_sums = false;
  int64_t panel_rows = 0;
  int64_t block_tokens = 0;
  size_t x_at = 0;
  size_t threads_at = 0;               // of the first thread's part
  size_t thread_bytes = 0;             // of each thread's part: panel, lane sums, totals
  size_t lanes_at = 0, totals_at = 0;  // within a thread's part

 private:
  static constexpr size_t align(size_t bytes) { return (bytes + 63) & ~size_t{63}; }
};

}  // namespace octet::avx2
