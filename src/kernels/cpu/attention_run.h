#pragma once
// The course of one attention call, for every vector kernel of the CPU. A Tile type brings the
// vector code:
//   struct Buffer { float q[kTilePairs * kTileMaxHeadDim]; ... };  // aligned as its loads need
//   // The partial result of every pair for one split, written for the pairs that see a token of
//   it. template <DType> static void attend_split(const TileJob&, int64_t split, Buffer&,
//                                             PartialHead* const* heads, float* const* values);
//   // A later split's partial result merged into an earlier one's.
//   static void merge(PartialHead&, float* values, const PartialHead& next, const float*
//   next_values,
//                     int64_t dim);
//   // The output of one row and head.
//   static void finish(const PartialHead&, const float* values, float v_scale, int64_t head_dim,
//                      float* out);
// Baseline code: included outside ISA regions.
#include <cstring>

#include "kernels/cpu/attention_work.h"
#include "kernels/cpu/kv_codec.h"

namespace octet::cpu {

// One tile of a call.
struct TileJob {
  const Attention::Args& args;
  const AttentionWork& work;
  AttentionTile tile;
  int64_t dim;  // padded_dim(head_dim)

  int64_t row(int64_t p) const { return work.row(tile, p); }
  int64_t head(int64_t p) const { return work.head(tile, p); }
  // Tokens that pair p sees, and that any pair sees.
  TokenRange sees(int64_t p) const { return work.sees(*tile.span, row(p)); }
  TokenRange sees() const { return work.sees(tile); }
  float* out(int64_t p) const {
    return args.out + row(p) * args.out_stride + head(p) * args.head_dim;
  }
  // First element of a token's head in the cache.
  int64_t cache_offset(int64_t token) const {
    const int32_t* table = args.block_tables + tile.span->table * args.table_stride;
    const int64_t slot = table[token / args.block_size] * args.block_size + token % args.block_size;
    return kv_offset(slot, tile.kv_head, args.block_size, args.kv_heads, args.head_dim);
  }
};

// The tile's queries as rows of `dim` floats, padded with zeros.
inline void load_queries(const TileJob& job, float* q) {
  for (int64_t p = 0; p < job.tile.count; ++p, q += job.dim) {
    const float* src =
        job.args.q + job.row(p) * job.args.q_stride + job.head(p) * job.args.head_dim;
    std::memcpy(q, src, static_cast<size_t>(job.args.head_dim) * sizeof(float));
    std::fill(q + job.args.head_dim, q + job.dim, 0.0F);
  }
}

// One tile, split after split.
template <class Tile, DType kType>
void attend_tile(const TileJob& job) {
  typename Tile::Buffer buffer;
  alignas(64) float merged[kTilePairs * kTileMaxHeadDim];
  alignas(64) float fresh[kTilePairs * kTileMaxHeadDim];
  PartialHead heads[kTilePairs];
  PartialHead fresh_heads[kTilePairs];
  PartialHead* head_at[kTilePairs];
  float* values_at[kTilePairs];
  load_queries(job, buffer.q);
  const TokenRange tokens = job.sees();
  for (int64_t split = tokens.begin / kKvSplit; split * kKvSplit < tokens.end; ++split) {
    for (int64_t p = 0; p < job.tile.count; ++p) {
      // A pair's first split is its result so far; later ones are merged into it.
      const bool first = job.sees(p).begin >= split * kKvSplit;
      head_at[p] = first ? heads + p : fresh_heads + p;
      values_at[p] = (first ? merged : fresh) + p * job.dim;
    }
    Tile::template attend_split<kType>(job, split, buffer, head_at, values_at);
    for (int64_t p = 0; p < job.tile.count; ++p) {
      const bool seen = !intersect(job.sees(p), split_tokens(split)).empty();
      if (!seen || head_at[p] == heads + p) continue;
      Tile::merge(heads[p], merged + p * job.dim, fresh_heads[p], fresh + p * job.dim, job.dim);
    }
  }
  for (int64_t p = 0; p < job.tile.count; ++p) {
    Tile::finish(heads[p], merged + p * job.dim, job.args.v_scale, job.args.head_dim, job.out(p));
  }
}

// One split of a tile into scratch.
template <class Tile, DType kType>
void attend_one_split(const TileJob& job, int64_t split, const AttentionScratch& scratch) {
  if (intersect(job.sees(), split_tokens(split)).empty()) return;
  typename Tile::Buffer buffer;
  PartialHead* head_at[kTilePairs];
  float* values_at[kTilePairs];
  load_queries(job, buffer.q);
  for (int64_t p = 0; p < job.tile.count; ++p) {
    const int64_t pair = job.row(p) * job.args.heads + job.head(p);
    const int64_t at = pair * job.work.splits() + split;
    head_at[p] = scratch.heads + at;
    values_at[p] = scratch.values + at * job.dim;
  }
  Tile::template attend_split<kType>(job, split, buffer, head_at, values_at);
}

// The merge of a tile whose splits are in scratch.
template <class Tile>
void merge_tile(const TileJob& job, const AttentionScratch& scratch) {
  for (int64_t p = 0; p < job.tile.count; ++p) {
    const int64_t pair = job.row(p) * job.args.heads + job.head(p);
    PartialHead* heads = scratch.heads + pair * job.work.splits();
    float* values = scratch.values + pair * job.work.splits() * job.dim;
    const TokenRange seen = job.sees(p);
    const int64_t first = seen.begin / kKvSplit;
    for (int64_t split = first + 1; split * kKvSplit < seen.end; ++split) {
      Tile::merge(heads[first], values + first * job.dim, heads[split], values + split * job.dim,
                  job.dim);
    }
    Tile::finish(heads[first], values + first * job.dim, job.args.v_scale, job.args.head_dim,
                 job.out(p));
  }
}

template <class Tile, DType kType>
void run_attention_typed(const Attention::Args& args, ThreadPool& pool) {
  const AttentionWork work(args, pool.threads(), static_cast<int64_t*>(args.scratch));
  const auto job = [&](int64_t tile) {
    return TileJob{args, work, work.tile(tile), padded_dim(args.head_dim)};
  };
  if (!work.by_split()) {
    pool.parallel_for(work.tiles(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) attend_tile<Tile, kType>(job(i));
    });
    return;
  }
  const AttentionScratch scratch = carve(args, work);
  const int64_t splits = work.splits();
  pool.parallel_for(work.tiles() * splits, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      attend_one_split<Tile, kType>(job(i / splits), i % splits, scratch);
    }
  });
  pool.parallel_for(work.tiles(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) merge_tile<Tile>(job(i), scratch);
  });
}

// Runs a call with the vector code of `Tile`.
template <class Tile>
void run_attention(const Attention::Args& args, Stream& stream) noexcept {
  with_kv_dtype(args.kv_dtype, [&](auto type) {
    run_attention_typed<Tile, decltype(type)::value>(args, stream.pool());
  });
}

}  // namespace octet::cpu
