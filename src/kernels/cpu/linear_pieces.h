#pragma once
// K as wide-vector kernels walk it: chunks of 64 columns, pieces of chunks that share their scales,
// and spans of pieces after which partial sums are folded. All three follow from the problem alone,
// so the order of sums does not depend on the number of tokens, rows or threads.
#include <algorithm>
#include <cstdint>

#include "kernels/cpu/linear_segments.h"

namespace octet {

// Columns that are decoded together.
inline constexpr int64_t kChunk = 64;
inline constexpr uint64_t kWholeChunk = ~uint64_t{0};

// Consecutive chunks of one segment. A chunk that two segments share is visited once for each, with
// masks that complement each other.
struct Piece {
  int64_t chunk = 0;        // the first: columns [64 chunk, 64 chunk + 64)
  int64_t chunks = 0;       // at least 1
  int64_t weight_col = 0;   // column of the weight's scale grid
  int64_t input_col = 0;    // column of the input's scale grid
  uint64_t first_mask = 0;  // columns of the first chunk that belong to the piece
  uint64_t last_mask = 0;   // of the last chunk; the same as first_mask when there is one
  bool ends_span = false;
};

constexpr int64_t chunks_of(int64_t k) {
  return (k + kChunk - 1) / kChunk;
}

// An upper bound of the pieces that make_pieces writes.
inline int64_t piece_bound(const LinearProblem& problem, int64_t span_chunks) {
  const int64_t segments = count_segments(problem).segments;
  return segments + (chunks_of(problem.k) + segments) / span_chunks + 1;
}

// Writes the pieces of `problem` in order of K; a span has at most `span_chunks` chunks. Returns
// their number.
inline int64_t make_pieces(const LinearProblem& problem, int64_t span_chunks, Piece* pieces) {
  int64_t count = 0;
  int64_t room = span_chunks;
  Segments walk(problem);
  for (Segment s; walk.next(s);) {
    for (int64_t begin = s.begin; begin < s.end;) {
      const int64_t chunk = begin / kChunk;
      const int64_t chunks = std::min(chunks_of(s.end) - chunk, room);
      const int64_t end = std::min(s.end, (chunk + chunks) * kChunk);
      Piece& piece = pieces[count++];
      piece = {chunk, chunks, s.weight_col, s.input_col};
      piece.first_mask = kWholeChunk << (begin - chunk * kChunk);
      piece.last_mask = kWholeChunk >> ((chunk + chunks) * kChunk - end);
      if (chunks == 1) piece.first_mask = piece.last_mask = piece.first_mask & piece.last_mask;
      room -= chunks;
      piece.ends_span = room == 0;
      if (room == 0) room = span_chunks;
      begin = end;
    }
  }
  if (count != 0) pieces[count - 1].ends_span = true;
  return count;
}

}  // namespace octet
