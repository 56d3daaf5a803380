// Operations on rows of activations: norm, gated activation, rounding, quantisation, largest value.
#include <algorithm>

#include "kernels/opencl/programs.h"
#include "op/absmax.h"
#include "op/norm.h"
#include "op/pointwise.h"
#include "op/quantize.h"

namespace octet::opencl {
namespace {

// A work-item per element.
ClGrid element_grid(int64_t width, int64_t rows) {
  return {{static_cast<size_t>(width), static_cast<size_t>(rows), 1}, {kRowItems, 1, 1}};
}

// kRowItems work-items per tile of a row.
ClGrid tile_grid(int64_t tiles, int64_t rows) {
  return {{static_cast<size_t>(tiles) * kRowItems, static_cast<size_t>(rows), 1},
          {kRowItems, 1, 1}};
}

void norm(const RmsNorm::Args& a, Stream& stream) noexcept {
  const ClGrid grid = tile_grid(a.rows, 1);
  if (a.weight == nullptr) {
    opencl(stream).enqueue(
        rows_program(), "add_rows", grid,
        {a.x, to_int(a.x_stride), a.delta, to_int(a.delta_stride), to_int(a.width),
         int{a.round_bf16}, a.not_finite, to_int(a.rows_per_flag), a.tag});
    return;
  }
  opencl(stream).enqueue(rows_program(), "norm", grid,
                         {a.x, to_int(a.x_stride), a.delta, to_int(a.delta_stride), a.weight, a.out,
                          to_int(a.out_stride), to_int(a.width), a.epsilon, int{a.round_bf16},
                          a.not_finite, to_int(a.rows_per_flag), a.tag});
}

void silu_mul(const SiluMul::Args& a, Stream& stream) noexcept {
  opencl(stream).enqueue(rows_program(), "silu_mul", element_grid(a.width, a.rows),
                         {a.gate, a.up, to_int(a.stride), a.out, to_int(a.out_stride),
                          to_int(a.width), int{a.round_bf16}});
}

void round_rows(const RoundBf16::Args& a, Stream& stream) noexcept {
  opencl(stream).enqueue(rows_program(), "round_rows", element_grid(a.width, a.rows),
                         {a.x, to_int(a.stride), to_int(a.width)});
}

void absmax(const AbsMax::Args& a, Stream& stream) noexcept {
  opencl(stream).enqueue(rows_program(), "absmax", tile_grid(a.rows, 1),
                         {a.x, to_int(a.stride), to_int(a.width), a.out});
}

void quantize(const Quantize::Args& a, Stream& stream) noexcept {
  if (a.output.dtype == DType::BF16) {
    opencl(stream).enqueue(rows_program(), "to_bf16", element_grid(a.width, a.rows),
                           {a.x, to_int(a.x_stride), to_int(a.width), a.codes});
    return;
  }
  const int e5m2 = a.output.dtype == DType::F8E5M2 ? 1 : 0;
  if (a.output.timing == ScaleTiming::Static) {
    opencl(stream).enqueue(
        rows_program(), "quantize_static", tile_grid(a.rows, 1),
        {a.x, to_int(a.x_stride), to_int(a.width), e5m2, a.static_scale, a.codes});
    return;
  }
  const ScaleTile& tile = a.output.tile;
  const int size = tile.cols == kWhole ? 0 : to_int(std::min(tile.cols, a.width + tile.first_col));
  opencl(stream).enqueue(rows_program(), "quantize_dynamic",
                         tile_grid(tile.tile_cols(a.width), a.rows),
                         {a.x, to_int(a.x_stride), to_int(a.width), size, to_int(tile.first_col),
                          e5m2, a.output.scale_dtype == DType::F8E8M0 ? 1 : 0, a.codes, a.scales});
}

constexpr Kernel<RmsNorm> kNorm{
    "opencl.norm.plain", DeviceKind::OpenCl, 100, {}, {}, nullptr, norm};
constexpr Kernel<SiluMul> kSiluMul{
    "opencl.silu_mul.plain", DeviceKind::OpenCl, 100, {}, {}, nullptr, silu_mul};
constexpr Kernel<RoundBf16> kRound{
    "opencl.round.plain", DeviceKind::OpenCl, 100, {}, {}, nullptr, round_rows};
constexpr Kernel<AbsMax> kAbsMax{
    "opencl.absmax.plain", DeviceKind::OpenCl, 100, {}, {}, nullptr, absmax};
constexpr Kernel<Quantize> kQuantize{
    .name = "opencl.quantize.plain",
    .device = DeviceKind::OpenCl,
    .preference = 100,
    .needs = {},
    .caps = {.outputs = {DType::BF16, DType::F8E4M3, DType::F8E5M2},
             .scales = {Granularity::Tensor, Granularity::Row, Granularity::Group}},
    .run = quantize,
};
OCTET_KERNEL(kNorm);
OCTET_KERNEL(kSiluMul);
OCTET_KERNEL(kRound);
OCTET_KERNEL(kAbsMax);
OCTET_KERNEL(kQuantize);

}  // namespace
}  // namespace octet::opencl
