// Rows of a table by index with AVX2.
#include <algorithm>

#include "kernels/cpu/norm_grain.h"
#include "kernels/cpu/vector_math_avx2.h"
#include "op/gather.h"

namespace octet {
namespace {

OCTET_ISA_BEGIN("avx2,fma,f16c")

template <DType kType>
void widen_row(const void* table, int64_t at, float* out, int64_t width) {
  const auto* src = static_cast<const cpu::KvElement<kType>*>(table) + at;
  int64_t i = 0;
  for (; i + 8 <= width; i += 8) _mm256_storeu_ps(out + i, cpu::load_kv_avx2<kType>(src + i));
  if (i < width) {
    cpu::store_lanes_avx2(out + i, cpu::load_kv_tail_avx2<kType>(src + i, width - i), width - i);
  }
}

OCTET_ISA_END

void gather_row(const Gather::Args& args, int64_t row) {
  float* out = args.out + row * args.width;
  const int64_t entry = args.ids[row] - args.first_entry;
  if (entry < 0 || entry >= args.entries) {
    std::fill(out, out + args.width, 0.0F);
    return;
  }
  const int64_t at = entry * args.table_stride;
  if (args.table_dtype == DType::F32) {
    widen_row<DType::F32>(args.table, at, out, args.width);
  } else if (args.table_dtype == DType::F16) {
    widen_row<DType::F16>(args.table, at, out, args.width);
  } else {
    widen_row<DType::BF16>(args.table, at, out, args.width);
  }
}

void run(const Gather::Args& args, Stream& stream) noexcept {
  stream.pool().parallel_for(args.rows, cpu::rows_per_chunk(args.width),
                             [&](int64_t begin, int64_t end) {
                               for (int64_t row = begin; row < end; ++row) gather_row(args, row);
                             });
}

constexpr Kernel<Gather> kKernel{
    .name = "cpu.gather.avx2",
    .device = DeviceKind::Cpu,
    .preference = 200,
    .needs = {Feature::Avx2, Feature::F16c},
    .caps = {.tables = {DType::F32, DType::F16, DType::BF16}},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
