// Attention with AVX2: all heads of a group share the stream of their K and V; decode is cut by KV
// split, prefill by rows.
#include "kernels/cpu/attention_tile_avx2.h"

namespace octet {
namespace {

constexpr Kernel<Attention> kKernel{
    .name = "cpu.attention.avx2",
    .device = DeviceKind::Cpu,
    .preference = 200,
    .needs = {Feature::Avx2, Feature::F16c},
    .caps = {.kv_dtypes = {DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2},
             .max_head_dim = cpu::kTileMaxHeadDim},
    .scratch_bytes = cpu::attention_scratch_bytes,
    .run = cpu::run_attention<cpu::TileAvx2>,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
