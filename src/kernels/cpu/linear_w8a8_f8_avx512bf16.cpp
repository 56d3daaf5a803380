// FP8 weights of any scale geometry with an FP8 input: both are decoded to bfloat16 by table, whose
// products are exact, and summed by vdpbf16ps.
#include "kernels/cpu/linear_formats_avx512bf16.h"

namespace octet {
namespace {

constexpr LinearKernel kKernel{
    .name = "cpu.linear.w8a8.f8.avx512bf16",
    .device = DeviceKind::Cpu,
    .scheme = SchemeId::W8A8,
    .preference = 341,
    .needs = {Feature::Avx512, Feature::Avx512Bf16, Feature::Avx512Vbmi},
    .caps = {.weight_dtypes = {DType::F8E4M3, DType::F8E5M2},
             .weight_scales = {Granularity::Tensor, Granularity::Row, Granularity::Group,
                               Granularity::Block},
             .scale_dtypes = {DType::F32, DType::F16, DType::BF16, DType::F8E8M0},
             .activation_scales = {Granularity::Tensor, Granularity::Row, Granularity::Group},
             .activation_dtypes = {DType::F8E4M3, DType::F8E5M2},
             .inputs = {}},
    .layout = kCheckpointLayout,
    .error = {.lanes = 16, .run = 4, .roundings = 1, .batch_invariant = true},
    .scratch_bytes = avx512::linear_scratch_bytes<avx512::F8ToBf16>,
    .pack = pack_in_place,
    .run = avx512::run_linear<avx512::F8ToBf16, avx512::F8ToBf16>,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
