// Rotary embedding and the cache write with AVX2; products and sums are rounded one by one, as the
// reference does.
#include "kernels/cpu/norm_grain.h"
#include "kernels/cpu/vector_math_avx2.h"
#include "op/rope.h"

namespace octet {
namespace {

OCTET_ISA_BEGIN("avx2,fma,f16c")

// Where rotated elements go: q stays float32; keys and values are divided by their scale.
template <DType kType, bool kScaled>
struct Sink {
  cpu::KvElement<kType>* out;
  float scale;

  OCTET_ALWAYS_INLINE void store(int64_t at, __m256 v, int64_t count) const {
    if (kScaled) v = _mm256_div_ps(v, _mm256_set1_ps(scale));
    cpu::store_kv_lanes_avx2<kType>(out + at, v, count);
  }
};

template <bool kRound>
OCTET_ALWAYS_INLINE __m256 rounded(__m256 v) {
  return kRound ? cpu::round_bf16_avx2(v) : v;
}

// One head rotated into `sink`, which may be the head itself.
template <bool kRound, class S>
void rotate(const Rope::Args& args, const float* src, const float* cos_sin, S sink) {
  const int64_t half = args.rotary_dim / 2;
  for (int64_t i = 0; i < half; i += 8) {
    const int64_t count = half - i;
    const __m256 cosine = cpu::load_lanes_avx2(cos_sin + i, count);
    const __m256 sine = cpu::load_lanes_avx2(cos_sin + half + i, count);
    const __m256 low = cpu::load_lanes_avx2(src + i, count);
    const __m256 high = cpu::load_lanes_avx2(src + half + i, count);
    sink.store(
        i, rounded<kRound>(_mm256_sub_ps(_mm256_mul_ps(low, cosine), _mm256_mul_ps(high, sine))),
        count);
    sink.store(
        half + i,
        rounded<kRound>(_mm256_add_ps(_mm256_mul_ps(high, cosine), _mm256_mul_ps(low, sine))),
        count);
  }
  for (int64_t i = args.rotary_dim; i < args.head_dim; i += 8) {
    const __m256 v = cpu::load_lanes_avx2(src + i, args.head_dim - i);
    sink.store(i, rounded<kRound>(v), args.head_dim - i);
  }
}

// One head of values into the cache.
template <class S>
void copy_head(const float* src, int64_t head_dim, S sink) {
  for (int64_t i = 0; i < head_dim; i += 8) {
    sink.store(i, cpu::load_lanes_avx2(src + i, head_dim - i), head_dim - i);
  }
}

OCTET_ISA_END

template <DType kType, bool kRound>
void rope_row(const Rope::Args& args, int64_t row) {
  using Element = cpu::KvElement<kType>;
  const float* cos_sin = args.cos_sin + args.positions[row] * args.rotary_dim;
  for (int64_t h = 0; h < args.heads; ++h) {
    float* head = args.q + row * args.q_stride + h * args.head_dim;
    rotate<kRound>(args, head, cos_sin, Sink<DType::F32, false>{head, 1});
  }
  for (int64_t h = 0; h < args.kv_heads; ++h) {
    const int64_t at =
        cpu::kv_offset(args.slots[row], h, args.block_size, args.kv_heads, args.head_dim);
    const Sink<kType, true> keys{static_cast<Element*>(args.k_cache) + at, args.k_scale};
    const Sink<kType, true> values{static_cast<Element*>(args.v_cache) + at, args.v_scale};
    rotate<kRound>(args, args.k + row * args.k_stride + h * args.head_dim, cos_sin, keys);
    copy_head(args.v + row * args.v_stride + h * args.head_dim, args.head_dim, values);
  }
}

void run(const Rope::Args& args, Stream& stream) noexcept {
  const int64_t width = (args.heads + 2 * args.kv_heads) * args.head_dim;
  cpu::with_kv_dtype(args.kv_dtype, [&](auto type) {
    stream.pool().parallel_for(
        args.rows, cpu::rows_per_chunk(width), [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            args.round_bf16 ? rope_row<decltype(type)::value, true>(args, row)
                            : rope_row<decltype(type)::value, false>(args, row);
          }
        });
  });
}

constexpr Kernel<Rope> kKernel{
    .name = "cpu.rope.avx2",
    .device = DeviceKind::Cpu,
    .preference = 200,
    .needs = {Feature::Avx2, Feature::F16c},
    .caps = {.kv_dtypes = {DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2}},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
