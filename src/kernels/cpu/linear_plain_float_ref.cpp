// Weights that are not quantised: BF16, F16 and F32.
#include "kernels/cpu/linear_ref.h"

namespace octet {
namespace {

constexpr LinearKernel kKernel{
    .name = "cpu.linear.plain.float.ref",
    .device = DeviceKind::Cpu,
    .scheme = SchemeId::Plain,
    .preference = 12,
    .needs = {},
    .caps = {.weight_dtypes = {DType::BF16, DType::F16, DType::F32},
             .inputs = {DType::F32, DType::BF16}},
    .layout = kCheckpointLayout,
    .error = {.lanes = 1, .roundings = 1, .wide = true, .batch_invariant = true},
    .pack = pack_in_place,
    .run = reference::run_linear,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
