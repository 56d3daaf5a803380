// Attention with AVX2: all heads of a group share the stream of their K and V; decode is cut by KV
// split, prefill by rows.
#include "kernels/cpu/attention_tile_avx2.h"

namespace octet {
namespace {

using cpu::AttentionTile;
using cpu::AttentionWork;
using cpu::kTileMaxHeadDim;
using cpu::kTilePairs;
using cpu::PartialHead;
using cpu::TileBufferAvx2;
using cpu::TokenRange;

OCTET_ISA_BEGIN("avx2,fma,f16c")

// One tile, split after split.
template <DType kType>
void attend_tile(const Attention::Args& args, const AttentionWork& work,
                 const AttentionTile& tile) {
  TileBufferAvx2 buffer;
  alignas(32) float merged[kTilePairs * kTileMaxHeadDim];
  alignas(32) float fresh[kTilePairs * kTileMaxHeadDim];
  PartialHead heads[kTilePairs];
  PartialHead fresh_heads[kTilePairs];
  PartialHead* head_at[kTilePairs];
  float* values_at[kTilePairs];
  const int64_t dim = cpu::padded_dim(args.head_dim);
  cpu::load_queries_avx2(args, work, tile, buffer.q, dim);
  const TokenRange tokens = work.sees(tile);
  for (int64_t split = tokens.begin / kKvSplit; split * kKvSplit < tokens.end; ++split) {
    // A pair's first split is its result so far; later ones are merged into it.
    const auto starts = [&](int64_t p) OCTET_LAMBDA_INLINE {
      return work.sees(*tile.span, work.row(tile, p)).begin >= split * kKvSplit;
    };
    for (int64_t p = 0; p < tile.count; ++p) {
      head_at[p] = starts(p) ? heads + p : fresh_heads + p;
      values_at[p] = (starts(p) ? merged : fresh) + p * dim;
    }
    cpu::attend_split_avx2<kType>(args, work, tile, split, buffer, head_at, values_at);
    for (int64_t p = 0; p < tile.count; ++p) {
      const TokenRange seen = work.sees(*tile.span, work.row(tile, p));
      if (starts(p) || intersect(seen, cpu::split_tokens(split)).empty()) continue;
      cpu::merge_avx2(heads[p], merged + p * dim, fresh_heads[p], fresh + p * dim, dim);
    }
  }
  for (int64_t p = 0; p < tile.count; ++p) {
    cpu::finish_avx2(
        heads[p], merged + p * dim, args.v_scale, args.head_dim,
        args.out + work.row(tile, p) * args.out_stride + work.head(tile, p) * args.head_dim);
  }
}

// One split of a tile into scratch.
template <DType kType>
void attend_one_split(const Attention::Args& args, const AttentionWork& work,
                      const AttentionTile& tile, int64_t split,
                      const cpu::AttentionScratch& scratch) {
  if (intersect(work.sees(tile), cpu::split_tokens(split)).empty()) return;
  TileBufferAvx2 buffer;
  PartialHead* head_at[kTilePairs];
  float* values_at[kTilePairs];
  const int64_t dim = cpu::padded_dim(args.head_dim);
  cpu::load_queries_avx2(args, work, tile, buffer.q, dim);
  for (int64_t p = 0; p < tile.count; ++p) {
    const int64_t at =
        (work.row(tile, p) * args.heads + work.head(tile, p)) * work.splits() + split;
    head_at[p] = scratch.heads + at;
    values_at[p] = scratch.values + at * dim;
  }
  cpu::attend_split_avx2<kType>(args, work, tile, split, buffer, head_at, values_at);
}

// The merge of a tile whose splits are in scratch.
void merge_tile(const Attention::Args& args, const AttentionWork& work, const AttentionTile& tile,
                const cpu::AttentionScratch& scratch) {
  const int64_t dim = cpu::padded_dim(args.head_dim);
  for (int64_t p = 0; p < tile.count; ++p) {
    const int64_t row = work.row(tile, p);
    const int64_t pair = row * args.heads + work.head(tile, p);
    const TokenRange seen = work.sees(*tile.span, row);
    const int64_t first = seen.begin / kKvSplit;
    PartialHead* heads = scratch.heads + pair * work.splits();
    float* values = scratch.values + pair * work.splits() * dim;
    for (int64_t split = first + 1; split * kKvSplit < seen.end; ++split) {
      cpu::merge_avx2(heads[first], values + first * dim, heads[split], values + split * dim, dim);
    }
    cpu::finish_avx2(heads[first], values + first * dim, args.v_scale, args.head_dim,
                     args.out + row * args.out_stride + work.head(tile, p) * args.head_dim);
  }
}

OCTET_ISA_END

template <DType kType>
void run_typed(const Attention::Args& args, Stream& stream) {
  const cpu::AttentionScratch scratch = cpu::carve(args);
  ThreadPool& pool = stream.pool();
  const AttentionWork work(args, pool.threads(), scratch.tile_begins);
  if (!work.by_split()) {
    pool.parallel_for(work.items(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) attend_tile<kType>(args, work, work.tile(i));
    });
    return;
  }
  pool.parallel_for(work.items(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      attend_one_split<kType>(args, work, work.tile(i / work.splits()), i % work.splits(), scratch);
    }
  });
  pool.parallel_for(work.tiles(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) merge_tile(args, work, work.tile(i), scratch);
  });
}

void run(const Attention::Args& args, Stream& stream) noexcept {
  cpu::with_kv_dtype(args.kv_dtype,
                     [&](auto type) { run_typed<decltype(type)::value>(args, stream); });
}

constexpr Kernel<Attention> kKernel{
    .name = "cpu.attention.avx2",
    .device = DeviceKind::Cpu,
    .preference = 200,
    .needs = {Feature::Avx2, Feature::F16c},
    .caps = {.kv_dtypes = {DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2},
             .max_head_dim = kTileMaxHeadDim},
    .scratch_bytes = cpu::attention_scratch_bytes,
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
