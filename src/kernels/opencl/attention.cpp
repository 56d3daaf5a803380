// Attention in lane vectors. Few rows with a long context are cut by splits of the context, so that
// a device has work for all its units; the cut changes no bit of the result.
#include "op/attention.h"
#include "kernels/opencl/programs.h"

namespace octet::opencl {
namespace {

constexpr int64_t kMaxHeadDim = 256;
// Rows times heads that keep a device busy without a cut by splits.
constexpr int64_t kEnoughItems = 1024;

int64_t chunks_of(int64_t head_dim) {
  return (head_dim + 15) / 16;
}
int64_t splits_of(int64_t context) {
  return (context + kKvSplit - 1) / kKvSplit;
}
size_t partial_bytes(int64_t items, int64_t splits, int64_t head_dim) {
  return static_cast<size_t>(items * splits * (2 + chunks_of(head_dim) * 16)) * sizeof(float);
}

// Partial results that a call may have, or those of a single row if they are more. Longer calls are
// not cut.
constexpr size_t kMostPartials = size_t{16} << 20;

bool is_cut(int64_t items, int64_t heads, int64_t splits, int64_t head_dim) {
  return splits > 1 && items <= std::max(kEnoughItems, heads) &&
         (items == heads || partial_bytes(items, splits, head_dim) <= kMostPartials);
}

size_t scratch_bytes(const Attention::Problem& p, int) {
  const int64_t all_splits = splits_of(p.max_context);
  if (all_splits <= 1) return 0;
  size_t most = partial_bytes(p.heads, all_splits, p.head_dim);
  // More rows are cut while their context is short enough.
  const int64_t rows = std::min(p.max_rows, kEnoughItems / p.heads);
  for (int64_t r = 2; r <= rows; ++r) {
    const size_t of_one_split = partial_bytes(r * p.heads, 1, p.head_dim);
    const int64_t splits = std::min(all_splits, static_cast<int64_t>(kMostPartials / of_one_split));
    if (splits > 1) most = std::max(most, partial_bytes(r * p.heads, splits, p.head_dim));
  }
  return most;
}

// Items of attention.cl: the values of a long head are cut into parts of four chunks.
ClGrid value_grid(const Family& family, int64_t items, int64_t splits, int64_t head_dim) {
  ClGrid grid = lane_grid(family, items, splits);
  const int64_t chunks = chunks_of(head_dim);
  grid.global[2] = chunks <= 8 ? 1 : static_cast<size_t>((chunks + 3) / 4);
  return grid;
}

template <const Family& F>
void attend(const Attention::Args& a, Stream& stream) noexcept {
  const Family& family = form_of(F, stream);
  const int64_t items = a.rows * a.heads;
  const int64_t all_splits = splits_of(a.max_context);
  const int64_t splits = is_cut(items, a.heads, all_splits, a.head_dim) ? all_splits : 1;
  const ClProgram program = attention_program(family, a.kv_dtype, chunks_of(a.head_dim));
  opencl(stream).enqueue(program, "attend", value_grid(family, items, splits, a.head_dim),
                         {a.q,
                          to_int(a.q_stride),
                          a.k_cache,
                          a.v_cache,
                          to_int(a.block_size),
                          a.spans,
                          to_int(a.span_count),
                          a.block_tables,
                          to_int(a.table_stride),
                          to_int(a.rows),
                          to_int(a.heads),
                          to_int(a.kv_heads),
                          to_int(a.head_dim),
                          to_int(a.window),
                          a.scale * a.k_scale,
                          a.v_scale,
                          a.out,
                          to_int(a.out_stride),
                          to_int(splits),
                          a.scratch});
  if (splits == 1) return;
  opencl(stream).enqueue(program, "merge_splits", value_grid(family, items, 1, a.head_dim),
                         {a.scratch, to_int(splits), to_int(items), to_int(a.heads),
                          to_int(a.head_dim), a.v_scale, a.out, to_int(a.out_stride)});
}

constexpr Kernel<Attention> record(std::string_view name, const Family& family, int preference,
                                   void (*run)(const Attention::Args&, Stream&) noexcept) {
  return {.name = name,
          .device = DeviceKind::OpenCl,
          .preference = preference,
          .needs = family.needs,
          .caps = {.kv_dtypes = {DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2},
                   .max_head_dim = kMaxHeadDim},
          .scratch_bytes = scratch_bytes,
          .run = run};
}

constexpr Kernel<Attention> kPlainAttention =
    record("opencl.attention.plain", kPlain, 100, attend<kPlain>);
constexpr Kernel<Attention> kSubgroupAttention =
    record("opencl.attention.subgroup", kSubgroup, 200, attend<kSubgroup>);
OCTET_KERNEL(kPlainAttention);
OCTET_KERNEL(kSubgroupAttention);

}  // namespace
}  // namespace octet::opencl
