// bfloat16 weights with a bfloat16 input, summed by vdpbf16ps.
#include "kernels/cpu/linear_formats_avx512bf16.h"

namespace octet {
namespace {

constexpr LinearKernel kKernel{
    .name = "cpu.linear.plain.bf16.avx512bf16",
    .device = DeviceKind::Cpu,
    .scheme = SchemeId::Plain,
    .preference = 242,
    .needs = {Feature::Avx512, Feature::Avx512Bf16, Feature::Avx512Vbmi},
    .caps = {.weight_dtypes = {DType::BF16}, .inputs = {DType::BF16}},
    .layout = kCheckpointLayout,
    .error = {.lanes = 16, .run = 4, .roundings = 1, .batch_invariant = true},
    .scratch_bytes = avx512::linear_scratch_bytes<avx512::Bf16AsStored>,
    .pack = pack_in_place,
    .run = avx512::run_linear<avx512::Bf16AsStored, avx512::Bf16AsStored>,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
