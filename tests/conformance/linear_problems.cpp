// The problem list of the linear operation.
#include <fmt/format.h>

#include "tests/conformance/linear_case.h"
#include "tests/conformance/matrix_lists.h"

namespace octet::conformance {
namespace {

struct Dims {
  int64_t n, k;
};

// From a single element over odd and ragged sizes to lengths where long chains show; several have
// N = K, where a transposed weight would go unnoticed by its shape.
constexpr Dims kShapes[] = {{1, 1},    {3, 7},     {5, 33},    {16, 16},   {17, 64},  {33, 100},
                            {70, 257}, {100, 100}, {130, 384}, {256, 256}, {9, 1030}, {6, 4100}};

// A scale geometry and a shape in which its last tiles are short. The last ones have so many rows
// that a thread may take several panels of them.
struct Geometry {
  ScaleTile tile;
  Dims dims;
};
constexpr Geometry kGeometries[] = {
    {ScaleTile::tensor(), {70, 257}},         {ScaleTile::row(), {71, 259}},
    {ScaleTile::tensor(), {100, 100}},        {ScaleTile::row(), {72, 72}},
    {ScaleTile::group(128), {9, 1030}},       {ScaleTile::group(32), {33, 100}},
    {ScaleTile::group(7), {33, 100}},         {ScaleTile::group(100), {70, 257}},
    {ScaleTile::group(1), {5, 33}},           {ScaleTile::group(64), {128, 128}},
    {ScaleTile::block(128, 128), {130, 384}}, {ScaleTile::block(128, 128), {300, 257}},
    {ScaleTile::block(128, 128), {256, 256}}, {ScaleTile::block(64, 32), {100, 100}},
    {ScaleTile::block(3, 5), {17, 64}},       {ScaleTile::block(16, kWhole), {70, 257}},
    {ScaleTile::row(), {1090, 30}},           {ScaleTile::block(100, 24), {1090, 62}},
    {ScaleTile::block(128, 128), {530, 130}},
};

// Cuts of a 192 x 320 record: parts of unequal size, none at the edge of a 128 or 48 wide tile.
struct Cut {
  Range rows, cols;
};
constexpr Cut kCuts[] = {{{0, 73}, {0, 320}},
                         {{73, 192}, {0, 320}},
                         {{0, 192}, {0, 130}},
                         {{0, 192}, {130, 320}},
                         {{100, 192}, {200, 211}}};
constexpr Dims kCutDims{192, 320};

QuantSpec f8(ScaleTile tile, DType dtype = DType::F8E4M3, DType scale_dtype = DType::F32) {
  return {.dtype = dtype, .tile = tile, .scale_dtype = scale_dtype};
}

QuantSpec dynamic(ScaleTile tile, DType dtype = DType::F8E4M3) {
  return {.dtype = dtype, .tile = tile, .timing = ScaleTiming::Dynamic};
}

// Collects cases; every other one has a bias, most have gaps between the rows of x and y.
class List {
 public:
  LinearCase& add(SchemeId scheme, Dims dims, const QuantSpec& weight,
                  const std::optional<QuantSpec>& activation = std::nullopt) {
    const auto count = static_cast<int64_t>(cases_.size());
    cases_.push_back({.scheme = scheme,
                      .n = dims.n,
                      .k = dims.k,
                      .weight = weight,
                      .activation = activation,
                      .bias = count % 2 == 0,
                      .x_pad = count % 3 * 5,
                      .y_pad = count % 4 * 3});
    return cases_.back();
  }

  void add_cuts(SchemeId scheme, const QuantSpec& weight,
                const std::optional<QuantSpec>& activation = std::nullopt) {
    for (const Cut& cut : kCuts) {
      LinearCase& c = add(scheme, kCutDims, weight, activation);
      c.rows = cut.rows;
      c.cols = cut.cols;
    }
  }

  // Repeats every problem whose input is not quantised with a bfloat16 input.
  void add_bf16_inputs() {
    const size_t count = cases_.size();
    for (size_t i = 0; i < count; ++i) {
      if (cases_[i].activation) continue;
      cases_.push_back(cases_[i]);
      cases_.back().input = DType::BF16;
    }
  }

  // The cases with their names, which are unique.
  std::vector<LinearCase> named() const;

 private:
  std::vector<LinearCase> cases_;
};

std::string describe(const LinearCase& c) {
  std::string text =
      fmt::format("{} {} x {} {}x{}", name(c.scheme), to_string(c.weight),
                  c.activation ? to_string(*c.activation) : std::string(name(c.input)), c.n, c.k);
  if (c.rows) {
    text += fmt::format(" rows [{}, {}) cols [{}, {})", c.rows->begin, c.rows->end, c.cols->begin,
                        c.cols->end);
  }
  if (c.values == Values::OneSign) text += " one sign";
  if (c.values == Values::Wide) text += " wide";
  return text;
}

std::vector<LinearCase> List::named() const {
  std::vector<LinearCase> result = cases_;
  for (LinearCase& c : result) c.name = describe(c);
  return result;
}

void add_plain(List& list) {
  constexpr SchemeId kPlain = SchemeId::Plain;
  for (DType dtype : {DType::BF16, DType::F16, DType::F32}) {
    const QuantSpec weight{.dtype = dtype};
    for (Dims dims : kShapes) list.add(kPlain, dims, weight);
    list.add_cuts(kPlain, weight);
    list.add(kPlain, {12, 4100}, weight).values = Values::OneSign;
    list.add(kPlain, {40, 300}, weight).values = Values::Wide;
    list.add(kPlain, {130, 200}, weight).many_rows = true;
  }
}

void add_w8a16(List& list) {
  constexpr SchemeId kScheme = SchemeId::W8A16;
  for (Dims dims : kShapes) list.add(kScheme, dims, f8(ScaleTile::row()));
  for (const Geometry& g : kGeometries) {
    list.add(kScheme, g.dims, f8(g.tile));
    list.add(kScheme, g.dims, f8(g.tile, DType::F8E5M2));
  }
  for (DType scales : {DType::F16, DType::BF16, DType::F8E8M0}) {
    list.add(kScheme, {33, 100}, f8(ScaleTile::row(), DType::F8E4M3, scales));
    list.add(kScheme, {64, 256}, f8(ScaleTile::group(32), DType::F8E4M3, scales));
    list.add(kScheme, {100, 100}, f8(ScaleTile::group(32), DType::F8E5M2, scales));
    list.add(kScheme, {130, 384}, f8(ScaleTile::block(128, 128), DType::F8E4M3, scales));
  }
  for (const ScaleTile& tile : {ScaleTile::tensor(), ScaleTile::row(), ScaleTile::group(48),
                                ScaleTile::block(128, 128), ScaleTile::block(40, 48)}) {
    list.add_cuts(kScheme, f8(tile));
  }
  list.add(kScheme, {6, 4100}, f8(ScaleTile::group(1024)));
  list.add(kScheme, {12, 4100}, f8(ScaleTile::row())).values = Values::OneSign;
  list.add(kScheme, {12, 4100}, f8(ScaleTile::block(128, 128))).values = Values::OneSign;
  list.add(kScheme, {40, 300}, f8(ScaleTile::row())).values = Values::Wide;
  list.add(kScheme, {40, 300}, f8(ScaleTile::block(128, 128))).values = Values::Wide;
  list.add(kScheme, {130, 200}, f8(ScaleTile::row())).many_rows = true;
  list.add(kScheme, {130, 200}, f8(ScaleTile::block(128, 128))).many_rows = true;
}

void add_w8a8(List& list) {
  constexpr SchemeId kScheme = SchemeId::W8A8;
  const QuantSpec fixed{.dtype = DType::F8E4M3};
  const QuantSpec token = dynamic(ScaleTile::row());
  for (Dims dims : kShapes) list.add(kScheme, dims, f8(ScaleTile::row()), token);
  for (const Geometry& g : kGeometries) {
    list.add(kScheme, g.dims, f8(g.tile), fixed);
    list.add(kScheme, g.dims, f8(g.tile), token);
    // Groups of x whose edges lie on, between and across those of the weight.
    for (Extent group : {Extent{128}, Extent{64}, Extent{48}, Extent{7}}) {
      list.add(kScheme, g.dims, f8(g.tile), dynamic(ScaleTile::group(group)));
    }
  }
  for (DType scales : {DType::F16, DType::BF16, DType::F8E8M0}) {
    list.add(kScheme, {33, 100}, f8(ScaleTile::row(), DType::F8E4M3, scales), token);
    list.add(kScheme, {64, 256}, f8(ScaleTile::group(32), DType::F8E4M3, scales),
             dynamic(ScaleTile::group(32)));
  }
  for (DType weight : {DType::F8E4M3, DType::F8E5M2}) {
    for (DType input : {DType::F8E4M3, DType::F8E5M2}) {
      list.add(kScheme, {66, 250}, f8(ScaleTile::row(), weight), dynamic(ScaleTile::row(), input));
      list.add(kScheme, {70, 257}, f8(ScaleTile::block(128, 128), weight),
               dynamic(ScaleTile::group(128), input));
      if (weight == DType::F8E4M3 && input == DType::F8E4M3) continue;  // squares are above
      list.add(kScheme, {72, 72}, f8(ScaleTile::row(), weight), dynamic(ScaleTile::row(), input));
      list.add(kScheme, {140, 140}, f8(ScaleTile::block(128, 128), weight),
               dynamic(ScaleTile::group(128), input));
    }
  }
  list.add_cuts(kScheme, f8(ScaleTile::block(128, 128)), dynamic(ScaleTile::group(128)));
  list.add_cuts(kScheme, f8(ScaleTile::block(40, 48)), dynamic(ScaleTile::group(32)));
  list.add_cuts(kScheme, f8(ScaleTile::row()), token);
  list.add_cuts(kScheme, f8(ScaleTile::tensor()), fixed);
  list.add(kScheme, {6, 4100}, f8(ScaleTile::block(4, 2000)), dynamic(ScaleTile::group(1500)));
  list.add(kScheme, {12, 4100}, f8(ScaleTile::row()), token).values = Values::OneSign;
  // Many groups of x along one scale of the weight: long chains where groups end no segment.
  list.add(kScheme, {12, 4100}, f8(ScaleTile::row()), dynamic(ScaleTile::group(128))).values =
      Values::OneSign;
  list.add(kScheme, {12, 4100}, f8(ScaleTile::block(128, 128)), dynamic(ScaleTile::group(128)))
      .values = Values::OneSign;
  list.add(kScheme, {130, 200}, f8(ScaleTile::row()), token).many_rows = true;
  list.add(kScheme, {130, 200}, f8(ScaleTile::block(128, 128)), dynamic(ScaleTile::group(128)))
      .many_rows = true;
}

template <SchemeId kScheme>
std::vector<MatrixShape> shapes_of() {
  std::vector<MatrixShape> shapes;
  for (const LinearCase& c : linear_cases()) {
    if (c.scheme == kScheme) shapes.push_back({c.n, c.k});
  }
  return shapes;
}

const DeclareMatrices kMatrices{{{"linear w8a8", "[N, K]", shapes_of<SchemeId::W8A8>},
                                 {"linear w8a16", "[N, K]", shapes_of<SchemeId::W8A16>},
                                 {"linear plain", "[N, K]", shapes_of<SchemeId::Plain>}}};

}  // namespace

const std::vector<LinearCase>& linear_cases() {
  static const std::vector<LinearCase> cases = [] {
    List list;
    add_plain(list);
    add_w8a16(list);
    add_w8a8(list);
    list.add_bf16_inputs();
    return list.named();
  }();
  return cases;
}

}  // namespace octet::conformance
