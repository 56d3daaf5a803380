// Linear layers on Intel's matrix engine: two widths, weights with one scale per tensor or row and
// with blocks. Preferences are ordered as those of linear_lanes.cpp, for its reasons.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/opencl/linear_panels.h"
#include "kernels/opencl/programs.h"
#include "kernels/opencl/sources.h"

namespace octet::opencl {
namespace {

// Rows of x that one pass over a panel serves, smallest first. 16 and more need twice the registers
// of a thread; codes of x are decoded in registers and leave no room for 32.
constexpr int kRows[] = {1, 2, 4, 8, 16, 32};
constexpr int kMostCodeRows = 16;
constexpr int kManyRegisters = 16;

// `x` is BF16 or the type of its codes.
ClProgram dpas_program(const Family& family, DType weight, DType x, int rows) {
  const std::string_view define = x == DType::F8E4M3   ? " -DOCTET_X_E4M3"
                                  : x == DType::F8E5M2 ? " -DOCTET_X_E5M2"
                                                       : "";
  return {
      interned(fmt::format("linear_{}_{}_{}_{}", name(weight), name(x), family.name, rows)),
      kLinearDpasSource,
      interned(fmt::format("{} -DROWS={}{}{}{}", family.options, rows, element_define(weight),
                           define, rows >= kManyRegisters ? " -cl-intel-256-GRF-per-thread" : ""))};
}

int rows_for(int64_t m, DType x) {
  const int most = is_f8(x) ? kMostCodeRows : std::end(kRows)[-1];
  for (const int rows : kRows) {
    if (m <= rows || rows == most) return rows;
  }
  return most;
}

constexpr EnumSet<Granularity> kWhole16 = {Granularity::Tensor, Granularity::Row};
constexpr EnumSet<Granularity> kParts = {Granularity::Group, Granularity::Block};

template <const Family& F>
void run(const LinearArgs& args, Stream& stream) noexcept {
  run_dpas(F, args, stream);
}

constexpr bool is_wide(const Family& family) {
  return family.items == 16;
}

constexpr LinearKernel w8a16(std::string_view name, const Family& family, int preference,
                             EnumSet<Granularity> weight_scales,
                             void (*run)(const LinearArgs&, Stream&) noexcept) {
  return {.name = name,
          .device = DeviceKind::OpenCl,
          .scheme = SchemeId::W8A16,
          .preference = preference,
          .needs = family.needs,
          .caps = {.weight_dtypes = {DType::F8E4M3, DType::F8E5M2},
                   .weight_scales = weight_scales,
                   .scale_dtypes = {DType::F32, DType::F16, DType::BF16, DType::F8E8M0},
                   .inputs = {DType::BF16}},
          .layout = is_wide(family) ? kX16Layout : kX8Layout,
          .error = {.lanes = 1, .run = 1, .roundings = 1, .batch_invariant = true},
          .code_bytes = is_wide(family) ? x16_bytes : x8_bytes,
          .pack = is_wide(family) ? pack_x16 : pack_x8,
          .run = run};
}

constexpr LinearKernel w8a8(std::string_view name, const Family& family, int preference,
                            EnumSet<Granularity> weight_scales,
                            void (*run)(const LinearArgs&, Stream&) noexcept) {
  LinearKernel kernel = w8a16(name, family, preference, weight_scales, run);
  kernel.scheme = SchemeId::W8A8;
  kernel.caps.activation_scales = {Granularity::Tensor, Granularity::Row, Granularity::Group};
  kernel.caps.activation_dtypes = {DType::F8E4M3, DType::F8E5M2};
  kernel.caps.inputs = {};
  // The product of both scales, and its product with a sum.
  kernel.error.roundings = 2;
  return kernel;
}

constexpr LinearKernel kW8a16Of16 =
    w8a16("opencl.linear.w8a16.f8.dpas16", kDpas16, 345, kWhole16, run<kDpas16>);
constexpr LinearKernel kW8a8PartsOf16 =
    w8a8("opencl.linear.w8a8.f8_block.dpas16", kDpas16, 335, kParts, run<kDpas16>);
constexpr LinearKernel kW8a8Of16 =
    w8a8("opencl.linear.w8a8.f8.dpas16", kDpas16, 325, kWhole16, run<kDpas16>);
constexpr LinearKernel kW8a16PartsOf16 =
    w8a16("opencl.linear.w8a16.f8_block.dpas16", kDpas16, 315, kParts, run<kDpas16>);
OCTET_KERNEL(kW8a16Of16);
OCTET_KERNEL(kW8a8PartsOf16);
OCTET_KERNEL(kW8a8Of16);
OCTET_KERNEL(kW8a16PartsOf16);

constexpr LinearKernel kW8a16Of8 =
    w8a16("opencl.linear.w8a16.f8.dpas8", kDpas8, 340, kWhole16, run<kDpas8>);
constexpr LinearKernel kW8a8PartsOf8 =
    w8a8("opencl.linear.w8a8.f8_block.dpas8", kDpas8, 330, kParts, run<kDpas8>);
constexpr LinearKernel kW8a8Of8 =
    w8a8("opencl.linear.w8a8.f8.dpas8", kDpas8, 320, kWhole16, run<kDpas8>);
constexpr LinearKernel kW8a16PartsOf8 =
    w8a16("opencl.linear.w8a16.f8_block.dpas8", kDpas8, 310, kParts, run<kDpas8>);
OCTET_KERNEL(kW8a16Of8);
OCTET_KERNEL(kW8a8PartsOf8);
OCTET_KERNEL(kW8a8Of8);
OCTET_KERNEL(kW8a16PartsOf8);

}  // namespace

void run_dpas(const Family& family, const LinearArgs& args, Stream& stream) noexcept {
  if (args.m == 0) return;
  const PackedWeight& weight = *args.weight;
  const LinearProblem& problem = weight.problem;
  const ScaleTile& tile = problem.weight.tile;
  const DType x = problem.activation ? problem.activation->dtype : DType::BF16;
  const ScaleTile x_tile = problem.activation ? problem.activation->tile : ScaleTile::tensor();
  const bool x_groups = x_tile.granularity() == Granularity::Group;
  const int64_t x_scale_stride =
      x_tile.granularity() == Granularity::Tensor ? 0 : x_tile.tile_cols(problem.k);
  const int rows = rows_for(args.m, x);
  const auto columns = static_cast<int64_t>(family.items);
  opencl(stream).enqueue(
      dpas_program(family, problem.weight.dtype, x, rows), "linear",
      lane_grid(family, (problem.n + columns - 1) / columns, (args.m + rows - 1) / rows),
      {weight.codes, weight.scales, weight.bias, args.x.data, args.x.scales, args.y,
       to_int(problem.n), to_int(problem.k), to_int(args.m), to_int(args.x.row_stride),
       x_groups ? tile_size(x_tile.cols, problem.k + x_tile.first_col) : 0,
       x_groups ? to_int(x_tile.first_col) : 0, to_int(x_scale_stride), to_int(args.y_stride),
       to_int(weight.scale_cols), tile_size(tile.rows, problem.n + tile.first_row),
       to_int(tile.first_row), tile_size(tile.cols, problem.k + tile.first_col),
       to_int(tile.first_col)});
}

std::vector<ClProgram> dpas_programs(const Family& family) {
  std::vector<ClProgram> programs;
  for (const DType weight : {DType::F8E4M3, DType::F8E5M2}) {
    for (const DType x : {DType::BF16, DType::F8E4M3, DType::F8E5M2}) {
      for (const int rows : kRows) {
        if (rows == rows_for(rows, x)) programs.push_back(dpas_program(family, weight, x, rows));
      }
    }
  }
  return programs;
}

}  // namespace octet::opencl
