// From logits to tokens.
#include "op/sample.h"
#include "kernels/opencl/programs.h"

namespace octet::opencl {
namespace {

ClGrid row_grid(int64_t rows) {
  return {{static_cast<size_t>(rows) * kVocabItems, 1, 1}, {kVocabItems, 1, 1}};
}

void argmax(const ArgMax::Args& a, Stream& stream) noexcept {
  opencl(stream).enqueue(sample_program(), "argmax", row_grid(a.rows),
                         {a.logits, to_int(a.vocab), a.out, a.not_finite, a.tag});
}

void topk(const TopK::Args& a, Stream& stream) noexcept {
  opencl(stream).enqueue(sample_program(), "topk", row_grid(a.rows),
                         {a.logits, to_int(a.vocab), to_int(a.k), a.ids, a.logprobs});
}

void logprob(const LogProb::Args& a, Stream& stream) noexcept {
  opencl(stream).enqueue(sample_program(), "logprob", row_grid(a.rows),
                         {a.logits, to_int(a.vocab), a.ids, a.out});
}

template <const Family& F>
void sample(const Sample::Args& a, Stream& stream) noexcept {
  const Family& family = form_of(F, stream);
  opencl(stream).enqueue(
      draw_program(family), "draw", lane_grid(family, a.rows, 1),
      {a.logits, to_int(a.rows), to_int(a.vocab), a.params, a.history, a.out, a.scratch});
}

constexpr Kernel<ArgMax> kArgMax{
    "opencl.argmax.plain", DeviceKind::OpenCl, 100, {}, {}, nullptr, argmax};
constexpr Kernel<TopK> kTopK{"opencl.topk.plain", DeviceKind::OpenCl, 100, {}, {}, nullptr, topk};
constexpr Kernel<LogProb> kLogProb{
    "opencl.logprob.plain", DeviceKind::OpenCl, 100, {}, {}, nullptr, logprob};
constexpr Kernel<Sample> kPlainSample{
    "opencl.sample.plain", DeviceKind::OpenCl, 100, kPlain.needs, {}, nullptr, sample<kPlain>};
constexpr Kernel<Sample> kSubgroupSample{
    "opencl.sample.subgroup", DeviceKind::OpenCl, 200, kSubgroup.needs, {}, nullptr,
    sample<kSubgroup>};
OCTET_KERNEL(kArgMax);
OCTET_KERNEL(kTopK);
OCTET_KERNEL(kLogProb);
OCTET_KERNEL(kPlainSample);
OCTET_KERNEL(kSubgroupSample);

}  // namespace
}  // namespace octet::opencl
