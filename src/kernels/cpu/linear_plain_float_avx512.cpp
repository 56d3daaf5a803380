// bfloat16, binary16 and float32 weights with a float32 input, widened to float32 and summed by
// fused multiply-adds.
#include "kernels/cpu/linear_formats_avx512f32.h"

namespace octet {
namespace {

void run(const LinearArgs& args, Stream& stream) noexcept {
  switch (args.weight->problem.weight.dtype) {
    case DType::BF16:
      return avx512::run_linear<avx512::Bf16ToF32, avx512::F32LikeBf16>(args, stream);
    case DType::F16:
      return avx512::run_linear<avx512::F16ToF32, avx512::F32AsStored>(args, stream);
    default:
      return avx512::run_linear<avx512::F32AsStored, avx512::F32AsStored>(args, stream);
  }
}

constexpr LinearKernel kKernel{
    .name = "cpu.linear.plain.float.avx512",
    .device = DeviceKind::Cpu,
    .scheme = SchemeId::Plain,
    .preference = 232,
    .needs = {Feature::Avx512, Feature::Avx512Vbmi},
    .caps = {.weight_dtypes = {DType::BF16, DType::F16, DType::F32}},
    .layout = kCheckpointLayout,
    .error = {.lanes = 16, .run = 4, .roundings = 1, .batch_invariant = true},
    .scratch_bytes = avx512::linear_scratch_bytes<avx512::F32AsStored>,
    .pack = pack_in_place,
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
