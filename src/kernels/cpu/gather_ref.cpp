// Rows of a table by index, element by element: the reference.
#include <algorithm>

#include "num/bf16.h"
#include "op/gather.h"

namespace octet {
namespace {

float widen(const void* table, DType dtype, int64_t at) {
  if (dtype == DType::F32) return static_cast<const float*>(table)[at];
  const uint16_t bits = static_cast<const uint16_t*>(table)[at];
  return dtype == DType::F16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

void run(const Gather::Args& args, Stream& stream) noexcept {
  stream.pool().parallel_for(args.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* out = args.out + row * args.width;
      const int64_t entry = args.ids[row] - args.first_entry;
      if (entry < 0 || entry >= args.entries) {
        std::fill(out, out + args.width, 0.0F);
        continue;
      }
      for (int64_t i = 0; i < args.width; ++i) {
        out[i] = widen(args.table, args.table_dtype, entry * args.table_stride + i);
      }
    }
  });
}

constexpr Kernel<Gather> kKernel{
    .name = "cpu.gather.ref",
    .device = DeviceKind::Cpu,
    .preference = 10,
    .needs = {},
    .caps = {.tables = {DType::F32, DType::F16, DType::BF16}},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
