#pragma once
// How numbers are quantised: scale geometry as one formula, and the words of a checkpoint for one
// layer.
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "num/dtype.h"

namespace octet {

// Number of elements along one axis that share a scale, in elements.
using Extent = int64_t;

// The whole axis. It divides every index to 0, so one formula serves every granularity.
inline constexpr Extent kWhole = std::numeric_limits<Extent>::max();

enum class Granularity : uint8_t { Tensor, Row, Group, Block };
constexpr std::string_view name(Granularity g) {
  constexpr std::string_view kNames[] = {"tensor", "row", "group", "block"};
  return kNames[static_cast<int>(g)];
}

// Elements that share a scale:  scale(r, c) = scales[(r + first_row) / rows][(c + first_col) /
// cols]. first_row and first_col say where a view begins inside its first tile (a tensor-parallel
// cut, a fused part).
struct ScaleTile {
  Extent rows = kWhole;
  Extent cols = kWhole;
  Extent first_row = 0;
  Extent first_col = 0;

  static constexpr ScaleTile tensor() { return {}; }
  static constexpr ScaleTile row() { return {1, kWhole}; }
  static constexpr ScaleTile group(Extent g) { return {1, g}; }
  static constexpr ScaleTile block(Extent r, Extent c) { return {r, c}; }

  constexpr Granularity granularity() const {
    if (cols == kWhole)
      return rows == kWhole ? Granularity::Tensor
                            : (rows == 1 ? Granularity::Row : Granularity::Block);
    return rows == 1 ? Granularity::Group : Granularity::Block;
  }

  // Index of the tile that holds row r or column c of the view.
  constexpr int64_t tile_row(int64_t r) const {
    return rows == kWhole ? 0 : (r + first_row) / rows;
  }
  constexpr int64_t tile_col(int64_t c) const {
    return cols == kWhole ? 0 : (c + first_col) / cols;
  }

  // Number of tiles that n rows or k columns of the view touch; the last may be short.
  constexpr int64_t tile_rows(int64_t n) const { return n == 0 ? 0 : tile_row(n - 1) + 1; }
  constexpr int64_t tile_cols(int64_t k) const { return k == 0 ? 0 : tile_col(k - 1) + 1; }

  constexpr auto operator<=>(const ScaleTile&) const = default;
};

// True when every tile of `fine` lies inside one tile of `coarse`, so that repeating the coarse
// scales is exact (tensor -> row -> group, block -> group). Both views must start at the same
// element.
bool refines(const ScaleTile& coarse, const ScaleTile& fine);

enum class ScaleTiming : uint8_t { Static, Dynamic };

// How a tensor is stored or how an input is quantised, e.g. "f8e4m3/block128x128/f32/static".
struct QuantSpec {
  DType dtype = DType::BF16;
  ScaleTile tile{};
  DType scale_dtype = DType::F32;
  ScaleTiming timing = ScaleTiming::Static;

  constexpr auto operator<=>(const QuantSpec&) const = default;
};

// A checkpoint's words for one linear layer.
struct LayerQuant {
  QuantSpec weight;  // dtype BF16, F16 or F32: not quantised, tile and scale_dtype mean nothing
  std::optional<QuantSpec> input;  // nullopt: activations are not quantised
  bool per_token_for_tensor =
      false;  // the checkpoint asks for dynamic per-tensor input, which is computed per token

  constexpr auto operator<=>(const LayerQuant&) const = default;
};

std::string to_string(const ScaleTile& tile);
std::string to_string(const QuantSpec& spec);

}  // namespace octet
