// Quantises the input of a linear layer with AVX2, byte for byte as the formula says: the largest
// magnitude by its bits, a true division, rounding by integer arithmetic.
#include <bit>

#include "kernels/cpu/norm_grain.h"
#include "kernels/cpu/vector_math_avx2.h"
#include "op/quantize.h"

namespace octet {
namespace {

OCTET_ISA_BEGIN("avx2,fma,f16c")

// Bits order as magnitudes do, NaN above all numbers.
float largest_magnitude(const float* x, int64_t n) {
  const __m256i sign = _mm256_set1_epi32(static_cast<int>(0x80000000U));
  __m256i largest = _mm256_setzero_si256();
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    largest = _mm256_max_epi32(largest, _mm256_andnot_si256(sign, bits));
  }
  if (i < n) {
    const __m256 last = cpu::load_lanes_avx2(x + i, n - i);
    largest = _mm256_max_epi32(largest, _mm256_andnot_si256(sign, _mm256_castps_si256(last)));
  }
  return std::bit_cast<float>(cpu::max_epi32_avx2(largest));
}

// Codes of eight elements, one per lane; lanes beyond `count` are codes of zero.
template <DType kType>
OCTET_ALWAYS_INLINE __m256i codes_of(const float* x, int64_t count, __m256 scale) {
  const __m256 v = cpu::load_lanes_avx2(x, count);
  return cpu::f8_codes_avx2<kType>(_mm256_div_ps(v, scale));
}

template <DType kType>
void quantize_tile(const float* x, int64_t n, float scale, uint8_t* out) {
  const __m256 scales = _mm256_set1_ps(scale);
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m256i codes = cpu::pack_bytes_avx2(
        codes_of<kType>(x + i, 8, scales), codes_of<kType>(x + i + 8, 8, scales),
        codes_of<kType>(x + i + 16, 8, scales), codes_of<kType>(x + i + 24, 8, scales));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), codes);
  }
  for (; i < n; i += 8) {
    const __m256i codes = codes_of<kType>(x + i, n - i, scales);
    uint8_t bytes[8];
    _mm_storel_epi64(reinterpret_cast<__m128i*>(bytes),
                     _mm256_castsi256_si128(cpu::pack_bytes_avx2(codes, codes, codes, codes)));
    std::memcpy(out + i, bytes, static_cast<size_t>(std::min<int64_t>(8, n - i)));
  }
}

void round_row(const float* x, int64_t n, uint16_t* out) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256i halves = cpu::pack_halves_avx2(cpu::bf16_bits_avx2(_mm256_loadu_ps(x + i)),
                                                 cpu::bf16_bits_avx2(_mm256_loadu_ps(x + i + 8)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), halves);
  }
  for (; i < n; ++i) out[i] = f32_to_bf16(x[i]);
}

OCTET_ISA_END

template <DType kType>
void quantize_row(const Quantize::Args& args, int64_t row) {
  const float* x = args.x + row * args.x_stride;
  uint8_t* out = static_cast<uint8_t*>(args.codes) + row * args.width;
  const ScaleTile& tile = args.output.tile;
  const int64_t tiles = tile.tile_cols(args.width);
  for (int64_t t = 0; t < tiles; ++t) {
    const bool whole = tile.cols == kWhole;
    const int64_t begin = whole ? 0 : std::max<int64_t>(0, t * tile.cols - tile.first_col);
    const int64_t end =
        whole ? args.width : std::min(args.width, (t + 1) * tile.cols - tile.first_col);
    float scale = 0;
    if (args.output.timing == ScaleTiming::Static) {
      scale = args.static_scale[0];
    } else {
      scale = dynamic_scale(largest_magnitude(x + begin, end - begin), args.output);
      args.scales[row * tiles + t] = scale;
    }
    quantize_tile<kType>(x + begin, end - begin, scale, out + begin);
  }
}

void run(const Quantize::Args& args, Stream& stream) noexcept {
  stream.pool().parallel_for(args.rows, cpu::rows_per_chunk(args.width),
                             [&](int64_t begin, int64_t end) {
                               for (int64_t row = begin; row < end; ++row) {
                                 if (args.output.dtype == DType::BF16) {
                                   round_row(args.x + row * args.x_stride, args.width,
                                             static_cast<uint16_t*>(args.codes) + row * args.width);
                                 } else if (args.output.dtype == DType::F8E4M3) {
                                   quantize_row<DType::F8E4M3>(args, row);
                                 } else {
                                   quantize_row<DType::F8E5M2>(args, row);
                                 }
                               }
                             });
}

constexpr Kernel<Quantize> kKernel{
    .name = "cpu.quantize.avx2",
    .device = DeviceKind::Cpu,
    .preference = 200,
    .needs = {Feature::Avx2, Feature::F16c},
    .caps = {.outputs = {DType::BF16, DType::F8E4M3, DType::F8E5M2},
             .scales = {Granularity::Tensor, Granularity::Row, Granularity::Group}},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
