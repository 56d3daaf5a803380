// FP8 weights of any scale geometry with an FP8 input, whose codes are decoded once.
#include "kernels/cpu/linear_run_avx2.h"

namespace octet {
namespace {

template <class W>
void run_with(const LinearArgs& args, Stream& stream) {
  if (args.weight->problem.activation->dtype == DType::F8E4M3) {
    avx2::run<W, avx2::E4m3>(args, stream);
  } else {
    avx2::run<W, avx2::E5m2>(args, stream);
  }
}

void run(const LinearArgs& args, Stream& stream) noexcept {
  if (args.weight->problem.weight.dtype == DType::F8E4M3) {
    run_with<avx2::E4m3>(args, stream);
  } else {
    run_with<avx2::E5m2>(args, stream);
  }
}

constexpr LinearKernel kKernel{
    .name = "cpu.linear.w8a8.f8.avx2",
    .device = DeviceKind::Cpu,
    .scheme = SchemeId::W8A8,
    .preference = 301,
    .needs = {Feature::Avx2, Feature::F16c},
    .caps = {.weight_dtypes = {DType::F8E4M3, DType::F8E5M2},
             .weight_scales = {Granularity::Tensor, Granularity::Row, Granularity::Group,
                               Granularity::Block},
             .scale_dtypes = {DType::F32, DType::F16, DType::BF16, DType::F8E8M0},
             .activation_scales = {Granularity::Tensor, Granularity::Row, Granularity::Group},
             .activation_dtypes = {DType::F8E4M3, DType::F8E5M2},
             .inputs = {}},
    .layout = kCheckpointLayout,
    // One rounding beside the sums: of x times the scale of its group, or, where x has one scale a
    // row, of the whole sum times that scale. The weight scale of a segment costs none: its product
    // with the segment's sum is added to the total by one fused multiply-add.
    .error =
        {.lanes = 8, .run = 4, .roundings = 1, .scales_input_first = true, .batch_invariant = true},
    .scratch_bytes = avx2::scratch_bytes,
    .pack = pack_in_place,
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
