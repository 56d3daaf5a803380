// Attention in double precision, one row and head at a time with a running maximum: the reference.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/kv_codec.h"
#include "op/attention.h"

namespace octet {
namespace {

constexpr int64_t kMaxHeadDim = 1024;

const SeqSpan* span_of(const Attention::Args& args, int64_t row) {
  const SeqSpan* end = args.spans + args.span_count;
  const SeqSpan* found = std::find_if(args.spans, end, [row](const SeqSpan& span) {
    return row >= span.row_begin && row < span.row_begin + span.rows;
  });
  return found == end ? nullptr : found;
}

// The running softmax of one row and head.
struct Accumulator {
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;
  double out[kMaxHeadDim] = {};
};

template <DType kType>
void attend(const Attention::Args& args, const SeqSpan& span, int64_t row, int64_t head) {
  using Element = cpu::KvElement<kType>;
  const int64_t dim = args.head_dim;
  const int64_t kv_head = head / (args.heads / args.kv_heads);
  const float* q = args.q + row * args.q_stride + head * dim;
  const int32_t* table = args.block_tables + span.table * args.table_stride;
  const int64_t last = span.context + row - span.row_begin;
  const int64_t first = args.window > 0 ? std::max<int64_t>(0, last - args.window + 1) : 0;
  Accumulator acc;
  for (int64_t token = first; token <= last; ++token) {
    const int64_t slot = table[token / args.block_size] * args.block_size + token % args.block_size;
    const int64_t at = cpu::kv_offset(slot, kv_head, args.block_size, args.kv_heads, dim);
    const Element* k = static_cast<const Element*>(args.k_cache) + at;
    const Element* v = static_cast<const Element*>(args.v_cache) + at;
    double dot = 0;
    for (int64_t d = 0; d < dim; ++d) dot += double{q[d]} * double{cpu::kv_decode<kType>(k[d])};
    const double logit = dot * args.k_scale * args.scale;
    if (logit > acc.largest) {
      const double shrink = std::exp(acc.largest - logit);
      acc.largest = logit;
      acc.sum *= shrink;
      for (int64_t d = 0; d < dim; ++d) acc.out[d] *= shrink;
    }
    const double weight = std::exp(logit - acc.largest);
    acc.sum += weight;
    for (int64_t d = 0; d < dim; ++d) acc.out[d] += weight * double{cpu::kv_decode<kType>(v[d])};
  }
  float* out = args.out + row * args.out_stride + head * dim;
  for (int64_t d = 0; d < dim; ++d) {
    out[d] = static_cast<float>(acc.out[d] / acc.sum * args.v_scale);
  }
}

void run(const Attention::Args& args, Stream& stream) noexcept {
  cpu::with_kv_dtype(args.kv_dtype, [&](auto type) {
    stream.pool().parallel_for(args.rows * args.heads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t row = item / args.heads;
        const SeqSpan* span = span_of(args, row);
        if (span != nullptr) attend<decltype(type)::value>(args, *span, row, item % args.heads);
      }
    });
  });
}

constexpr Kernel<Attention> kKernel{
    .name = "cpu.attention.ref",
    .device = DeviceKind::Cpu,
    .preference = 10,
    .needs = {},
    .caps = {.kv_dtypes = {DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2},
             .max_head_dim = kMaxHeadDim},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
