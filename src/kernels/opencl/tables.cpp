// Operations on tensors of a stored type: table rows, rotation and the write into the cache.
#include "kernels/opencl/programs.h"
#include "op/gather.h"
#include "op/rope.h"

namespace octet::opencl {
namespace {

void gather(const Gather::Args& a, Stream& stream) noexcept {
  opencl(stream).enqueue(
      tables_program(a.table_dtype), "gather",
      {{static_cast<size_t>(a.width), static_cast<size_t>(a.rows), 1}, {kRowItems, 1, 1}},
      {a.table, to_int(a.table_stride), to_int(a.first_entry), to_int(a.entries), a.ids, a.out,
       to_int(a.width)});
}

void rope(const Rope::Args& a, Stream& stream) noexcept {
  const auto items = static_cast<size_t>(a.head_dim - a.rotary_dim / 2);
  const auto heads = static_cast<size_t>(a.heads + 2 * a.kv_heads);
  opencl(stream).enqueue(tables_program(a.kv_dtype), "rope",
                         {{items, heads, static_cast<size_t>(a.rows)}, {16, 1, 1}},
                         {a.q,
                          to_int(a.q_stride),
                          a.k,
                          to_int(a.k_stride),
                          a.v,
                          to_int(a.v_stride),
                          a.positions,
                          a.cos_sin,
                          a.slots,
                          a.k_cache,
                          a.v_cache,
                          to_int(a.block_size),
                          to_int(a.heads),
                          to_int(a.kv_heads),
                          to_int(a.head_dim),
                          to_int(a.rotary_dim),
                          a.k_scale,
                          a.v_scale,
                          int{a.interleaved},
                          int{a.round_bf16}});
}

constexpr Kernel<Gather> kGather{
    .name = "opencl.gather.plain",
    .device = DeviceKind::OpenCl,
    .preference = 100,
    .needs = {},
    .caps = {.tables = {DType::F32, DType::F16, DType::BF16}},
    .run = gather,
};
constexpr Kernel<Rope> kRope{
    .name = "opencl.rope.plain",
    .device = DeviceKind::OpenCl,
    .preference = 100,
    .needs = {},
    .caps = {.kv_dtypes = {DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2},
             .interleaved = true},
    .run = rope,
};
OCTET_KERNEL(kGather);
OCTET_KERNEL(kRope);

}  // namespace
}  // namespace octet::opencl
