// Weights that are not quantised, BF16, F16 and F32, with a float32 input.
#include "kernels/cpu/linear_run_avx2.h"

namespace octet {
namespace {

void run(const LinearArgs& args, Stream& stream) noexcept {
  const DType dtype = args.weight->problem.weight.dtype;
  if (dtype == DType::BF16) {
    avx2::run<avx2::Bf16, avx2::F32>(args, stream);
  } else if (dtype == DType::F16) {
    avx2::run<avx2::F16, avx2::F32>(args, stream);
  } else {
    avx2::run<avx2::F32, avx2::F32>(args, stream);
  }
}

constexpr LinearKernel kKernel{
    .name = "cpu.linear.plain.float.avx2",
    .device = DeviceKind::Cpu,
    .scheme = SchemeId::Plain,
    .preference = 202,
    .needs = {Feature::Avx2, Feature::F16c},
    .caps = {.weight_dtypes = {DType::BF16, DType::F16, DType::F32}},
    .layout = kCheckpointLayout,
    .error = {.lanes = 8, .run = 4, .roundings = 1, .batch_invariant = true},
    .scratch_bytes = avx2::scratch_bytes,
    .pack = pack_in_place,
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
