// FP8 weights of any scale geometry with an FP8 input: static tensor, per token, groups of any
// size.
#include "kernels/cpu/linear_ref.h"

namespace octet {
namespace {

constexpr LinearKernel kKernel{
    .name = "cpu.linear.w8a8.f8.ref",
    .device = DeviceKind::Cpu,
    .scheme = SchemeId::W8A8,
    .preference = 11,
    .needs = {},
    .caps = {.weight_dtypes = {DType::F8E4M3, DType::F8E5M2},
             .weight_scales = {Granularity::Tensor, Granularity::Row, Granularity::Group,
                               Granularity::Block},
             .scale_dtypes = {DType::F32, DType::F16, DType::BF16, DType::F8E8M0},
             .activation_scales = {Granularity::Tensor, Granularity::Row, Granularity::Group},
             .activation_dtypes = {DType::F8E4M3, DType::F8E5M2},
             .inputs = {}},
    .layout = kCheckpointLayout,
    .error = {.lanes = 1, .roundings = 1, .wide = true, .batch_invariant = true},
    .pack = pack_in_place,
    .run = reference::run_linear,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
