// A linear kernel that computes as the reference does, but for one output of each token.
#include <string_view>

#include "base/error.h"
#include "op/linear.h"

namespace octet {
namespace {

const LinearKernel& reference() {
  constexpr std::string_view kName = "cpu.linear.w8a8.f8.ref";
  for (const LinearKernel* kernel : kernels<LinearKernel>()) {
    if (kernel->name == kName) return *kernel;
  }
  throw_error(Code::Bug, "there is no reference kernel");
}

PackedWeight pack(const QuantView& view, const LinearProblem& problem, Device& device,
                  Stream& stream) {
  return reference().pack(view, problem, device, stream);
}

// The output in the middle is off by the size of its neighbours.
void run(const LinearArgs& args, Stream& stream) noexcept {
  reference().run(args, stream);
  const int64_t n = args.weight->problem.n;
  for (int64_t m = 0; m < args.m; ++m) {
    float* row = args.y + m * args.y_stride;
    row[n / 2] += 1.0F + 2 * row[n / 2 - 1];
  }
}

constexpr LinearKernel kKernel{
    .name = "cpu.linear.w8a8.f8.planted",
    .device = DeviceKind::Cpu,
    .scheme = SchemeId::W8A8,
    .preference = 399,
    .needs = {},
    .caps = {.weight_dtypes = {DType::F8E4M3},
             .weight_scales = {Granularity::Row},
             .activation_scales = {Granularity::Row},
             .activation_dtypes = {DType::F8E4M3}},
    .layout = kCheckpointLayout,
    .error = {.lanes = 1, .roundings = 1, .wide = true, .batch_invariant = true},
    .pack = pack,
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
