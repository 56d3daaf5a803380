#include "kernels/opencl/linear_panels.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/opencl/programs.h"
#include "kernels/opencl/sources.h"

namespace octet::opencl {
namespace {

// Rows of x that one pass over a panel serves, smallest first.
constexpr int kRows[] = {1, 2, 4, 8};

// Host bytes that are on their way to the device at a time while weights are laid out.
constexpr int64_t kPieceBytes = int64_t{2} << 20;

constexpr ClProgram kInputs{"linear_inputs", {}, "-cl-std=CL1.2"};

ClProgram inputs_program() {
  ClProgram program = kInputs;
  program.source = kLinearInputsSource;
  return program;
}

int64_t blocks(int64_t size, int64_t block) {
  return (size + block - 1) / block;
}

// The program for `rows` rows of x and, of 8-bit weights, `panels` panels a work-item.
ClProgram linear_program(const Family& family, DType weight, int rows, int panels = 1) {
  const std::string name_of = fmt::format("linear_{}_{}_{}", name(weight), family.name, rows);
  const std::string options =
      fmt::format("{} -DROWS={}{}", family.options, rows, element_define(weight));
  if (!is_f8(weight)) return {interned(name_of), kLinearFloatSource, interned(options)};
  return {interned(panels == 1 ? name_of : fmt::format("{}x{}", name_of, panels)), kLinearF8Source,
          interned(fmt::format("{} -DPANELS={}", options, panels))};
}

// Panels that a work-item takes. A thread of a GPU has registers for one, and there are many
// threads; a CPU has few, which read several places at once, and registers for eight panels of
// sums.
int panels_for(bool narrow, int rows, int64_t n) {
  if (narrow) return 1;
  constexpr int64_t kFewestItems = 16;
  int panels = std::max(1, 4 / rows);
  while (panels > 1 && blocks(n, int64_t{16} * panels) < kFewestItems) panels /= 2;
  return panels;
}

int rows_for(int64_t m) {
  for (const int rows : kRows) {
    if (m <= rows) return rows;
  }
  return std::end(kRows)[-1];
}

// x of a quantised input as float32, into the scratch.
LinearInput widen_input(const LinearArgs& args, Stream& stream) {
  const LinearProblem& problem = args.weight->problem;
  const QuantSpec& spec = *problem.activation;
  const Granularity granularity = spec.tile.granularity();
  const bool groups = granularity == Granularity::Group;
  const int64_t scale_stride =
      granularity == Granularity::Tensor ? 0 : spec.tile.tile_cols(problem.k);
  const ClGrid grid{{static_cast<size_t>(problem.k), static_cast<size_t>(args.m), 1}, {16, 1, 1}};
  opencl(stream).enqueue(
      inputs_program(), "widen_input", grid,
      {args.x.data, args.x.scales, args.scratch, to_int(args.m), to_int(problem.k),
       to_int(args.x.row_stride),
       groups ? to_int(std::min(spec.tile.cols, problem.k + spec.tile.first_col)) : 0,
       groups ? to_int(spec.tile.first_col) : 0, to_int(scale_stride),
       spec.dtype == DType::F8E5M2 ? 1 : 0});
  return {args.scratch, problem.k, nullptr};
}

uint64_t panel_bytes(int64_t n, int64_t k, int64_t columns) {
  return static_cast<uint64_t>(blocks(n, columns) * columns * blocks(k, 4) * 4);
}

// The weight with its codes in panels of `columns` columns.
PackedWeight pack_panels(const QuantView& view, const LinearProblem& problem, Device& device,
                         Stream& stream, int64_t columns) {
  const int64_t k = problem.k;
  PackedWeight packed =
      pack_beside(view, problem, device, stream, panel_bytes(problem.n, k, columns));
  const int64_t piece = std::max<int64_t>(1, kPieceBytes / (16 * k)) * 16;
  const Buffer staging = device.allocate(static_cast<size_t>(std::min(piece, problem.n) * k));
  auto* words = static_cast<std::byte*>(packed.storage.data());
  for (int64_t n = 0; n < problem.n; n += piece) {
    const int64_t rows = std::min(piece, problem.n - n);
    upload_rows(view, {n, n + rows}, staging.as<std::byte>(), stream);
    const auto items = static_cast<size_t>(columns);
    const ClGrid grid{
        {items, static_cast<size_t>(blocks(k, 16)), static_cast<size_t>(blocks(rows, columns))},
        {items, 1, 1}};
    opencl(stream).enqueue(inputs_program(), "pack_panels", grid,
                           {staging.data(), words + panel_bytes(n, k, columns), to_int(rows),
                            to_int(k), to_int(columns)});
  }
  stream.wait();
  return packed;
}

}  // namespace

int tile_size(Extent size, int64_t longest) {
  return size == kWhole ? 0 : to_int(std::min(size, longest));
}

uint64_t x16_bytes(int64_t n, int64_t k) {
  return panel_bytes(n, k, 16);
}

uint64_t x8_bytes(int64_t n, int64_t k) {
  return panel_bytes(n, k, 8);
}

PackedWeight pack_x16(const QuantView& view, const LinearProblem& problem, Device& device,
                      Stream& stream) {
  PackedWeight packed = pack_panels(view, problem, device, stream, 16);
  packed.layout = kX16Layout;
  return packed;
}

PackedWeight pack_x8(const QuantView& view, const LinearProblem& problem, Device& device,
                     Stream& stream) {
  PackedWeight packed = pack_panels(view, problem, device, stream, 8);
  packed.layout = kX8Layout;
  return packed;
}

size_t panel_scratch_bytes(const LinearProblem& problem, int64_t m, int) {
  return problem.activation ? static_cast<size_t>(m * problem.k) * sizeof(float) : 0;
}

void run_panels(const Family& family, const LinearArgs& args, Stream& stream) noexcept {
  if (args.m == 0) return;
  const PackedWeight& weight = *args.weight;
  const LinearProblem& problem = weight.problem;
  const ScaleTile& tile = problem.weight.tile;
  const LinearInput x = problem.activation ? widen_input(args, stream) : args.x;
  const int rows = rows_for(args.m);
  const int panels = panels_for(opencl(stream).narrow(), rows, problem.n);
  opencl(stream).enqueue(
      linear_program(family, problem.weight.dtype, rows, panels), "linear",
      lane_grid(family, blocks(problem.n, int64_t{16} * panels), blocks(args.m, rows)),
      {weight.codes, weight.scales, weight.bias, x.data, args.y, to_int(problem.n),
       to_int(problem.k), to_int(args.m), to_int(x.row_stride), to_int(args.y_stride),
       to_int(weight.scale_cols), tile_size(tile.rows, problem.n + tile.first_row),
       to_int(tile.first_row), tile_size(tile.cols, problem.k + tile.first_col),
       to_int(tile.first_col)});
}

void run_rows(const Family& family, const LinearArgs& args, Stream& stream) noexcept {
  if (args.m == 0) return;
  const PackedWeight& weight = *args.weight;
  const LinearProblem& problem = weight.problem;
  const int rows = rows_for(args.m);
  opencl(stream).enqueue(linear_program(family, problem.weight.dtype, rows), "linear",
                         lane_grid(family, problem.n, blocks(args.m, rows)),
                         {weight.codes, weight.bias, args.x.data, args.y, to_int(problem.n),
                          to_int(problem.k), to_int(args.m), to_int(weight.row_stride),
                          to_int(args.x.row_stride), to_int(args.y_stride)});
}

std::vector<ClProgram> common_linear_programs() {
  return {inputs_program()};
}

std::vector<ClProgram> linear_programs(const Family& family) {
  std::vector<ClProgram> programs;
  for (const DType weight : {DType::F8E4M3, DType::F8E5M2, DType::BF16, DType::F16, DType::F32}) {
    for (const int rows : kRows) programs.push_back(linear_program(family, weight, rows));
  }
  return programs;
}

}  // namespace octet::opencl
