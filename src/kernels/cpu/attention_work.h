#pragma once
// How attention is cut into work, for every vector kernel of the CPU. A tile is up to kTilePairs
// (row, head) pairs of one span that share a KV head; a thread takes a tile and either all of its
// KV splits, one after another, or a single one. Which of the two is chosen changes no bit of the
// result: partial results are made per split and merged in order either way. Baseline code:
// included outside ISA regions.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "op/attention.h"

namespace octet::cpu {

// 32: a tile's queries and logits (256 per pair) lie in L2, and the conversion of K and V to
// float32 is shared by so many pairs that it costs less than a tenth of the products.
inline constexpr int64_t kTilePairs = 32;
inline constexpr int64_t kTileMaxHeadDim = 256;

// Elements of a head as tiles keep it: whole vectors of 8, or of 16 for AVX-512.
constexpr int64_t padded_dim(int64_t head_dim) {
  return (head_dim + 15) / 16 * 16;
}

// A partial softmax: the largest logit, the sum of exp(logit - largest), and the values summed with
// those weights.
struct PartialHead {
  float largest = 0;
  float sum = 0;
};

// Half-open range of tokens.
struct TokenRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool empty() const { return begin >= end; }
};

constexpr TokenRange intersect(TokenRange a, TokenRange b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

constexpr TokenRange split_tokens(int64_t split) {
  return {split * kKvSplit, (split + 1) * kKvSplit};
}

// Pairs [first, first + count) of a span and one KV head; pair p is row p / group, head
// kv_head * group + p % group.
struct AttentionTile {
  const SeqSpan* span = nullptr;
  int64_t kv_head = 0;
  int64_t first = 0;
  int64_t count = 0;
};

// Partial results that a call cut by split may have: 16 MiB of them, or those of a single row if
// they are more. Calls with more have rows enough to keep threads busy without that cut.
constexpr int64_t max_partials(int64_t heads, int64_t head_dim, int64_t splits) {
  const int64_t bytes = padded_dim(head_dim) * 4 + 8;
  return std::max(heads * splits, (int64_t{16} << 20) / bytes);
}

// The cut of one call.
class AttentionWork {
 public:
  // `tile_begins` has room for span_count + 1 numbers.
  AttentionWork(const Attention::Args& args, int threads, int64_t* tile_begins)
      : args_(args), group_(args.heads / args.kv_heads), tile_begins_(tile_begins) {
    tile_begins[0] = 0;
    for (int64_t s = 0; s < args.span_count; ++s) {
      const int64_t pairs = args.spans[s].rows * group_;
      tile_begins[s + 1] = tile_begins[s] + (pairs + kTilePairs - 1) / kTilePairs;
    }
    splits_ = (args.max_context + kKvSplit - 1) / kKvSplit;
    by_split_ =
        splits_ > 1 && tiles() < kEnoughTiles * threads &&
        args.rows * args.heads * splits_ <= max_partials(args.heads, args.head_dim, splits_);
  }

  int64_t group() const { return group_; }
  int64_t splits() const { return splits_; }
  // Every KV head's tiles.
  int64_t tiles() const { return tile_begins_[args_.span_count] * args_.kv_heads; }
  // True when the work is a single split of a tile, whose results are merged afterwards.
  bool by_split() const { return by_split_; }

  // Tile `index`, the longest contexts of a span first, so that no long item starts last.
  AttentionTile tile(int64_t index) const {
    const int64_t reversed = tiles() - 1 - index;
    const int64_t of_spans = reversed / args_.kv_heads;
    const int64_t* begins = tile_begins_;
    const int64_t s =
        std::upper_bound(begins, begins + args_.span_count + 1, of_spans) - begins - 1;
    AttentionTile t;
    t.span = args_.spans + s;
    t.kv_head = reversed % args_.kv_heads;
    t.first = (of_spans - tile_begins_[s]) * kTilePairs;
    t.count = std::min(kTilePairs, t.span->rows * group_ - t.first);
    return t;
  }

  // Row of the batch and head of pair `p` of a tile.
  int64_t row(const AttentionTile& t, int64_t p) const {
    return t.span->row_begin + (t.first + p) / group_;
  }
  int64_t head(const AttentionTile& t, int64_t p) const {
    return t.kv_head * group_ + (t.first + p) % group_;
  }

  // Tokens that row `row` of a span's batch rows sees.
  TokenRange sees(const SeqSpan& span, int64_t row) const {
    const int64_t end = span.context + row - span.row_begin + 1;
    return {args_.window > 0 ? std::max<int64_t>(0, end - args_.window) : 0, end};
  }

  // Tokens that any pair of a tile sees.
  TokenRange sees(const AttentionTile& t) const {
    return {sees(*t.span, row(t, 0)).begin, sees(*t.span, row(t, t.count - 1)).end};
  }

  // Tiles that are enough to keep a thread busy without cutting them by split.
  static constexpr int64_t kEnoughTiles = 4;

 private:
  const Attention::Args& args_;
  int64_t group_;
  int64_t* tile_begins_;
  int64_t splits_ = 0;
  bool by_split_ = false;
};

constexpr size_t align64(size_t bytes) {
  return (bytes + 63) & ~size_t{63};
}

constexpr size_t tile_begins_bytes(int64_t spans) {
  return align64(static_cast<size_t>(spans + 1) * sizeof(int64_t));
}

// Partial results of a call cut by split, by [row * heads + head][split].
struct AttentionScratch {
  PartialHead* heads = nullptr;
  float* values = nullptr;  // padded_dim(head_dim) each
};

// Bytes for any call within `problem`: tile_begins, then AttentionScratch.
inline size_t attention_scratch_bytes(const Attention::Problem& problem, int threads) {
  const size_t begins = tile_begins_bytes(problem.max_rows);
  const int64_t splits = (problem.max_context + kKvSplit - 1) / kKvSplit;
  if (splits <= 1) return begins;
  // Few tiles have few pairs.
  const int64_t pairs = std::min(problem.max_rows * problem.heads,
                                 AttentionWork::kEnoughTiles * threads * kTilePairs);
  const auto partials = static_cast<size_t>(
      std::min(pairs * splits, max_partials(problem.heads, problem.head_dim, splits)));
  return begins + align64(partials * sizeof(PartialHead)) +
         partials * static_cast<size_t>(padded_dim(problem.head_dim)) * sizeof(float);
}

// The partial results in the scratch of a call cut by split.
inline AttentionScratch carve(const Attention::Args& args, const AttentionWork& work) {
  auto* bytes = static_cast<std::byte*>(args.scratch) + tile_begins_bytes(args.span_count);
  AttentionScratch s;
  s.heads = reinterpret_cast<PartialHead*>(bytes);
  bytes +=
      align64(static_cast<size_t>(args.rows * args.heads * work.splits()) * sizeof(PartialHead));
  s.values = reinterpret_cast<float*>(bytes);
  return s;
}

}  // namespace octet::cpu
