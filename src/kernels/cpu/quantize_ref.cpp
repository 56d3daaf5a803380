// Quantises the input of a linear layer tile by tile: the reference.
#include <algorithm>
#include <bit>

#include "num/bf16.h"
#include "num/f8.h"
#include "op/quantize.h"

namespace octet {
namespace {

// Largest magnitude of n elements by their bits, which order as magnitudes do: NaN is the largest.
float largest_magnitude(const float* x, int64_t n) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    largest = std::max(largest, std::bit_cast<uint32_t>(x[i]) & 0x7FFFFFFFU);
  }
  return std::bit_cast<float>(largest);
}

void round_row(const Quantize::Args& args, int64_t row) {
  const float* x = args.x + row * args.x_stride;
  uint16_t* out = static_cast<uint16_t*>(args.codes) + row * args.width;
  for (int64_t i = 0; i < args.width; ++i) out[i] = f32_to_bf16(x[i]);
}

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
    for (int64_t i = begin; i < end; ++i) out[i] = f32_to_f8(args.output.dtype, x[i] / scale);
  }
}

void run(const Quantize::Args& args, Stream& stream) noexcept {
  stream.pool().parallel_for(args.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      if (args.output.dtype == DType::BF16) {
        round_row(args, row);
      } else {
        quantize_row(args, row);
      }
    }
  });
}

constexpr Kernel<Quantize> kKernel{
    .name = "cpu.quantize.ref",
    .device = DeviceKind::Cpu,
    .preference = 10,
    .needs = {},
    .caps = {.outputs = {DType::BF16, DType::F8E4M3, DType::F8E5M2},
             .scales = {Granularity::Tensor, Granularity::Row, Granularity::Group}},
    .run = run,
};
OCTET_KERNEL(kKernel);

}  // namespace
}  // namespace octet
