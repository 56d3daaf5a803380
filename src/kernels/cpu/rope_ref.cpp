// Rotary embedding and the cache write, element by element: the reference.
#include "kernels/cpu/kv_codec.h"
#include "op/rope.h"

namespace octet {
namespace {

float rounded(float value, bool round) {
  return round ? round_to_bf16(value) : value;
}

// Where the elements of a rotated pair are in a head.
struct Pair {
  int64_t low, high;
};

Pair pair_at(const Rope::Args& args, int64_t pair) {
  if (args.interleaved) return {2 * pair, 2 * pair + 1};
  return {pair, args.rotary_dim / 2 + pair};
}

// A head after the rotation by the angles in `cos_sin`: `store(d, value)` takes its elements.
template <class Store>
void rotate(const Rope::Args& args, const float* head, const float* cos_sin, const Store& store) {
  const int64_t half = args.rotary_dim / 2;
  for (int64_t i = 0; i < half; ++i) {
    const float cosine = cos_sin[i];
    const float sine = cos_sin[half + i];
    const Pair at = pair_at(args, i);
    const float low = head[at.low];
    const float high = head[at.high];
    store(at.low, rounded(low * cosine - high * sine, args.round_bf16));
    store(at.high, rounded(high * cosine + low * sine, args.round_bf16));
  }
  for (int64_t d = args.rotary_dim; d < args.head_dim; ++d)
    store(d, rounded(head[d], args.round_bf16));
}

void rotate_q(const Rope::Args& args, int64_t row) {
  const float* cos_sin = args.cos_sin + args.positions[row] * args.rotary_dim;
  for (int64_t h = 0; h < args.heads; ++h) {
    float* head = args.q + row * args.q_stride + h * args.head_dim;
    rotate(args, head, cos_sin, [&](int64_t d, float value) { head[d] = value; });
  }
}

template <DType kType>
void write_kv(const Rope::Args& args, int64_t row) {
  using Element = cpu::KvElement<kType>;
  const float* cos_sin = args.cos_sin + args.positions[row] * args.rotary_dim;
  for (int64_t h = 0; h < args.kv_heads; ++h) {
    const float* k = args.k + row * args.k_stride + h * args.head_dim;
    const float* v = args.v + row * args.v_stride + h * args.head_dim;
    const int64_t at =
        cpu::kv_offset(args.slots[row], h, args.block_size, args.kv_heads, args.head_dim);
    Element* k_out = static_cast<Element*>(args.k_cache) + at;
    Element* v_out = static_cast<Element*>(args.v_cache) + at;
    rotate(args, k, cos_sin,
           [&](int64_t d, float value) { k_out[d] = cpu::kv_encode<kType>(value / args.k_scale); });
    for (int64_t d = 0; d < args.head_dim; ++d)
      v_out[d] = cpu::kv_encode<kType>(v[d] / args.v_scale);
  }
}

void run(const Rope::Args& args, Stream& stream) noexcept {
  cpu::with_kv_dtype(args.kv_dtype, [&](auto type) {
    stream.pool().parallel_for(args.rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        rotate_q(args, row);
        write_kv<decltype(type)::value>(args, row);
      }
    });
  });
}

constexpr Kernel<Rope> kKernel{
    .name = "cpu.rope.ref",
    .device = DeviceKind::Cpu,
    .preference = 10,
    .needs = {},
    .caps = {.kv_dtypes = {DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2},
             .interleaved = true},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
