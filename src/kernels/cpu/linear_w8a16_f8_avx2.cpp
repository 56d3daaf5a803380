// FP8 weights of any scale geometry with a float32 input.
#include "kernels/cpu/linear_run_avx2.h"

namespace octet {
namespace {

void run(const LinearArgs& args, Stream& stream) noexcept {
  if (args.weight->problem.weight.dtype == DType::F8E4M3) {
    avx2::run<avx2::E4m3, avx2::F32>(args, stream);
  } else {
    avx2::run<avx2::E5m2, avx2::F32>(args, stream);
  }
}

constexpr LinearKernel kKernel{
    .name = "cpu.linear.w8a16.f8.avx2",
    .device = DeviceKind::Cpu,
    .scheme = SchemeId::W8A16,
    .preference = 200,
    .needs = {Feature::Avx2, Feature::F16c},
    .caps = {.weight_dtypes = {DType::F8E4M3, DType::F8E5M2},
             .weight_scales = {Granularity::Tensor, Granularity::Row, Granularity::Group,
                               Granularity::Block},
             .scale_dtypes = {DType::F32, DType::F16, DType::BF16, DType::F8E8M0}},
    .layout = kCheckpointLayout,
    .error = {.lanes = 8, .run = 4, .roundings = 1, .batch_invariant = true},
    .scratch_bytes = avx2::scratch_bytes,
    .pack = pack_in_place,
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
