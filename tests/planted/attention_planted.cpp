// An attention kernel that computes as the reference does, but whose rows do not see their own
// token once there are others before them: a causal mask that is off by one.
#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "op/attention.h"

namespace octet {
namespace {

const Kernel<Attention>& reference() {
  constexpr std::string_view kName = "cpu.attention.ref";
  for (const Kernel<Attention>* kernel : kernels<Kernel<Attention>>()) {
    if (kernel->name == kName) return *kernel;
  }
  throw_error(Code::Bug, "there is no reference kernel");
}

void run(const Attention::Args& args, Stream& stream) noexcept {
  std::vector<SeqSpan> spans(args.spans, args.spans + args.span_count);
  for (SeqSpan& span : spans) span.context = std::max(0, span.context - 1);
  Attention::Args wrong = args;
  wrong.spans = spans.data();
  reference().run(wrong, stream);
}

constexpr Kernel<Attention> kKernel{
    .name = "cpu.attention.planted",
    .device = DeviceKind::Cpu,
    .preference = 399,
    .needs = {},
    .caps = {.kv_dtypes = {DType::F32, DType::BF16}},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
