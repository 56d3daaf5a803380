// The test before the matrix engine is used: its kernels against the plain ones on this device,
// with every finite code, a scale of its own in every tile, and sizes that fill no panel, tile or
// step.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/split_mix.h"
#include "device/opencl_self_tests.h"
#include "kernels/opencl/linear_panels.h"
#include "kernels/opencl/sources.h"
#include "num/bf16.h"
#include "num/error_bound.h"
#include "num/f8.h"

namespace octet::opencl {
namespace {

constexpr int64_t kN = 45, kK = 302;
constexpr int64_t kTokens[] = {1, 13};
constexpr int64_t kMostTokens = 13;
constexpr QuantSpec kWeight{.dtype = DType::F8E4M3, .tile = ScaleTile::block(16, 100)};
constexpr QuantSpec kCodes{.dtype = DType::F8E4M3, .tile = ScaleTile::group(128)};

bool is_finite_code(uint8_t code) {
  return (code & 0x7F) != 0x7F;
}

struct Data {
  std::vector<uint8_t> weight, x_codes;  // [kN, kK], [kMostTokens, kK]
  std::vector<float> scales, x_scales;   // grids of kWeight and kCodes
  std::vector<uint16_t> x_bf16;          // [kMostTokens, kK]
  std::vector<float> x;                  // the same as float32
};

Data make_data() {
  SplitMix64 random(17);
  Data data;
  for (int64_t i = 0; i < kN * kK; ++i) {
    // All codes in turn, then any.
    const auto code = static_cast<uint8_t>(i < 256 ? static_cast<uint64_t>(i) : random.bits());
    data.weight.push_back(is_finite_code(code) ? code : uint8_t{1});
  }
  for (int64_t i = 0; i < kWeight.tile.tile_rows(kN) * kWeight.tile.tile_cols(kK); ++i)
    data.scales.push_back(static_cast<float>(0.25 + random.uniform()));
  for (int64_t i = 0; i < kMostTokens * kK; ++i) {
    const auto byte = static_cast<uint8_t>(random.bits());
    data.x_codes.push_back(is_finite_code(byte) ? byte : uint8_t{1});
    const auto value = static_cast<float>(random.uniform() - 0.5);
    data.x_bf16.push_back(f32_to_bf16(value));
    data.x.push_back(bf16_to_f32(data.x_bf16.back()));
  }
  for (int64_t i = 0; i < kMostTokens * kCodes.tile.tile_cols(kK); ++i)
    data.x_scales.push_back(static_cast<float>(0.25 + random.uniform()));
  return data;
}

QuantView view_of(const Data& data) {
  QuantView view;
  view.spec = kWeight;
  view.codes = {reinterpret_cast<const std::byte*>(data.weight.data()), DType::F8E4M3,
                Shape{kN, kK}, kK};
  const int64_t rows = kWeight.tile.tile_rows(kN), cols = kWeight.tile.tile_cols(kK);
  view.scales = {reinterpret_cast<const std::byte*>(data.scales.data()), DType::F32,
                 Shape{rows, cols}, cols};
  return view;
}

LinearProblem problem_of(SchemeId scheme, DType input) {
  LinearProblem problem{.scheme = scheme, .n = kN, .k = kK, .weight = kWeight, .input = input};
  if (scheme == SchemeId::W8A8) problem.activation = kCodes;
  return problem;
}

template <class T>
Buffer uploaded(const std::vector<T>& values, Device& device, Stream& stream) {
  Buffer buffer = device.allocate(values.size() * sizeof(T));
  stream.upload(buffer.data(), values.data(), values.size() * sizeof(T));
  return buffer;
}

// sum |x * w| of every output, from which its error is bounded.
std::vector<double> magnitudes(const Data& data, SchemeId scheme) {
  const auto& value = f8_table(DType::F8E4M3);
  std::vector<double> sums;
  for (int64_t m = 0; m < kMostTokens; ++m) {
    for (int64_t n = 0; n < kN; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < kK; ++k) {
        const auto at = static_cast<size_t>(m * kK + k);
        const auto tile = static_cast<size_t>(
            kWeight.tile.tile_row(n) * kWeight.tile.tile_cols(kK) + kWeight.tile.tile_col(k));
        const auto group =
            static_cast<size_t>(m * kCodes.tile.tile_cols(kK) + kCodes.tile.tile_col(k));
        const double x = scheme == SchemeId::W8A8
                             ? double{value[data.x_codes[at]]} * double{data.x_scales[group]}
                             : double{data.x[at]};
        sum += std::fabs(x * double{value[data.weight[static_cast<size_t>(n * kK + k)]]} *
                         double{data.scales[tile]});
      }
      sums.push_back(sum);
    }
  }
  return sums;
}

// One scheme on both kernels, for few and for many tokens.
bool agrees(const Family& family, SchemeId scheme, Device& device) {
  const Data data = make_data();
  const std::unique_ptr<Stream> stream = device.make_stream();
  const bool is_codes = scheme == SchemeId::W8A8;
  const PackedWeight plain =
      pack_x16(view_of(data), problem_of(scheme, DType::F32), device, *stream);
  const auto pack = family.items == 16 ? pack_x16 : pack_x8;
  const PackedWeight tested = pack(view_of(data), problem_of(scheme, DType::BF16), device, *stream);
  const Buffer codes = uploaded(data.x_codes, device, *stream);
  const Buffer x = uploaded(data.x, device, *stream);
  const Buffer x_bf16 = uploaded(data.x_bf16, device, *stream);
  const Buffer x_scales = uploaded(data.x_scales, device, *stream);
  const Buffer scratch = device.allocate(panel_scratch_bytes(plain.problem, kMostTokens, 1) + 64);
  const std::vector<double> bounds = magnitudes(data, scheme);
  const auto outputs = static_cast<size_t>(kMostTokens * kN);
  for (const int64_t m : kTokens) {
    // What is not written stays NaN, which is equal to nothing.
    std::vector<float> expected(outputs, std::nanf("")), got = expected;
    const Buffer y = uploaded(expected, device, *stream);
    const Buffer y_tested = uploaded(got, device, *stream);
    LinearArgs args{
        .weight = &plain,
        .m = m,
        .x = {is_codes ? codes.data() : x.data(), kK, is_codes ? x_scales.as<float>() : nullptr},
        .y = y.as<float>(),
        .y_stride = kN,
        .scratch = scratch.data()};
    run_panels(form_of(kPlain, *stream), args, *stream);
    args.weight = &tested;
    args.x.data = is_codes ? codes.data() : x_bf16.data();
    args.y = y_tested.as<float>();
    run_dpas(family, args, *stream);
    stream->download(expected.data(), y.data(), outputs * sizeof(float));
    stream->download(got.data(), y_tested.data(), outputs * sizeof(float));
    for (size_t i = 0; i < static_cast<size_t>(m * kN); ++i) {
      const double error = std::fabs(double{expected[i]} - double{got[i]});
      if (!(error <= 2 * worst_bound(kK, bounds[i]))) return false;
    }
  }
  return true;
}

template <const Family& F>
bool passes(Device& device) {
  return agrees(F, SchemeId::W8A16, device) && agrees(F, SchemeId::W8A8, device);
}

// The sources that are compiled, by a hash: a change of one is a new version.
template <const Family& F>
std::string version() {
  uint64_t hash = 0;
  for (const std::string_view text : {kLinearDpasSource, kLinearF8Source, kLinearInputsSource}) {
    for (const char c : text) hash = hash * 1099511628211U + static_cast<unsigned char>(c);
  }
  return fmt::format("{} {:016x}", F.name, hash);
}

constexpr OpenClSelfTest kTest16{Feature::ClDpas16, version<kDpas16>, passes<kDpas16>};
constexpr OpenClSelfTest kTest8{Feature::ClDpas8, version<kDpas8>, passes<kDpas8>};
const RegisterOpenClSelfTest kRegister16(kTest16);
const RegisterOpenClSelfTest kRegister8(kTest8);

}  // namespace
}  // namespace octet::opencl
