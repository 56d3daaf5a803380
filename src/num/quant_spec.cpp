#include "num/quant_spec.h"

#include <fmt/format.h>

namespace octet {
namespace {

bool axis_refines(Extent coarse, Extent coarse_first, Extent fine, Extent fine_first) {
  if (coarse == kWhole) return true;
  if (fine == kWhole) return false;
  return coarse % fine == 0 && coarse_first % fine == fine_first % fine;
}

}  // namespace

bool refines(const ScaleTile& coarse, const ScaleTile& fine) {
  return axis_refines(coarse.rows, coarse.first_row, fine.rows, fine.first_row) &&
         axis_refines(coarse.cols, coarse.first_col, fine.cols, fine.first_col);
}

std::string to_string(const ScaleTile& tile) {
  std::string text;
  switch (tile.granularity()) {
    case Granularity::Tensor:
      text = "tensor";
      break;
    case Granularity::Row:
      text = "row";
      break;
    case Granularity::Group:
      text = fmt::format("group{}", tile.cols);
      break;
    case Granularity::Block:
      text = tile.cols == kWhole ? fmt::format("block{}xK", tile.rows)
                                 : fmt::format("block{}x{}", tile.rows, tile.cols);
      break;
  }
  if (tile.first_row != 0 || tile.first_col != 0) {
    text += fmt::format("+{},{}", tile.first_row, tile.first_col);
  }
  return text;
}

std::string to_string(const QuantSpec& spec) {
  if (!is_f8(spec.dtype)) return std::string(name(spec.dtype));
  return fmt::format("{}/{}/{}/{}", name(spec.dtype), to_string(spec.tile), name(spec.scale_dtype),
                     spec.timing == ScaleTiming::Static ? "static" : "dynamic");
}

}  // namespace octet
