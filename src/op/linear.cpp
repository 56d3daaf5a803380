#include "op/linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace octet {
namespace {

void judge_weight(const LinearCaps& caps, const LinearProblem& p, std::vector<Refusal>& out) {
  if (!caps.weight_dtypes.has(p.weight.dtype)) {
    out.push_back({RefusalCode::WeightDtype,
                   fmt::format("weight dtype {} not in {{{}}}", name(p.weight.dtype),
                               to_string(caps.weight_dtypes))});
  }
  if (!is_f8(p.weight.dtype)) return;
  if (!caps.weight_scales.has(p.weight.tile.granularity())) {
    out.push_back({RefusalCode::WeightScale,
                   fmt::format("weight scale {} not in {{{}}}", to_string(p.weight.tile),
                               to_string(caps.weight_scales))});
  }
  if (!caps.scale_dtypes.has(p.weight.scale_dtype)) {
    out.push_back({RefusalCode::ScaleDtype,
                   fmt::format("scale dtype {} not in {{{}}}", name(p.weight.scale_dtype),
                               to_string(caps.scale_dtypes))});
  }
}

void judge_activation(const LinearCaps& caps, const LinearProblem& p, std::vector<Refusal>& out) {
  if (!p.activation) {
    if (!caps.inputs.has(p.input)) {
      out.push_back({RefusalCode::Input,
                     fmt::format("input {} not in {{{}}}", name(p.input), to_string(caps.inputs))});
    }
    return;
  }
  if (!caps.activation_scales.has(p.activation->tile.granularity())) {
    out.push_back({RefusalCode::ActivationScale,
                   fmt::format("activation scale {} not in {{{}}}", to_string(p.activation->tile),
                               to_string(caps.activation_scales))});
  }
  if (!caps.activation_dtypes.has(p.activation->dtype)) {
    out.push_back({RefusalCode::Input,
                   fmt::format("activation dtype {} not in {{{}}}", name(p.activation->dtype),
                               to_string(caps.activation_dtypes))});
  }
}

void judge_shape(const LinearCaps& caps, const LinearProblem& p, std::vector<Refusal>& out) {
  if (!caps.outputs.has(p.output)) {
    out.push_back({RefusalCode::Output, fmt::format("output {} not in {{{}}}", name(p.output),
                                                    to_string(caps.outputs))});
  }
  if (p.n % caps.n_multiple != 0) {
    out.push_back(
        {RefusalCode::Shape, fmt::format("N={} is not a multiple of {}", p.n, caps.n_multiple)});
  }
  if (p.k % caps.k_multiple != 0) {
    out.push_back(
        {RefusalCode::Shape, fmt::format("K={} is not a multiple of {}", p.k, caps.k_multiple)});
  }
}

// Float values of a small dense host tensor.
std::vector<float> widen(const ConstTensorView& view) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(view.shape.elements()));
  for (int64_t i = 0; i < view.shape.elements(); ++i) values.push_back(element(view, i));
  return values;
}

// The scales of `view` as a dense grid of the tiles of `tile`, which equals the stored tile or
// refines it.
std::vector<float> scale_grid(const QuantView& view, const ScaleTile& tile) {
  const ScaleTile& stored = view.spec.tile;
  const int64_t rows = tile.tile_rows(view.n());
  const int64_t cols = tile.tile_cols(view.k());
  std::vector<float> grid;
  grid.reserve(static_cast<size_t>(rows * cols));
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t n =
        tile.rows == kWhole ? 0 : std::max<int64_t>(0, r * tile.rows - tile.first_row);
    for (int64_t c = 0; c < cols; ++c) {
      const int64_t k =
          tile.cols == kWhole ? 0 : std::max<int64_t>(0, c * tile.cols - tile.first_col);
      grid.push_back(
          element(view.scales, stored.tile_row(n) * view.scales.row_stride + stored.tile_col(k)));
    }
  }
  return grid;
}

constexpr size_t align64(size_t bytes) {
  return (bytes + 63) & ~size_t{63};
}

// Bytes of codes to copy, or 0 when the device reads them in place.
size_t copied_code_bytes(const QuantView& view, const Device& device) {
  if (device.reads_host_memory()) return 0;
  return align64(static_cast<size_t>(view.n() * view.k() * bytes_of(view.spec.dtype)));
}

}  // namespace

std::vector<Refusal> refusals(const LinearKernel& kernel, const LinearProblem& problem,
                              const DeviceInfo& device) {
  std::vector<Refusal> out = detail::device_refusals(kernel.device, kernel.needs, device);
  if (!out.empty() && out.front().code == RefusalCode::Device) return out;
  judge_weight(kernel.caps, problem, out);
  judge_activation(kernel.caps, problem, out);
  judge_shape(kernel.caps, problem, out);
  if (kernel.special != nullptr) {
    if (std::optional<Refusal> no = kernel.special(problem)) out.push_back(*std::move(no));
  }
  return out;
}

uint64_t in_place_bytes(const QuantSpec& weight, int64_t n, int64_t k, bool bias) {
  uint64_t bytes = 64;  // input scale
  if (is_f8(weight.dtype)) {
    bytes += align64(static_cast<size_t>(weight.tile.tile_rows(n) * weight.tile.tile_cols(k)) *
                     sizeof(float));
  }
  if (bias) bytes += align64(static_cast<size_t>(n) * sizeof(float));
  return bytes;
}

void upload_rows(const QuantView& view, Range rows, std::byte* device_dst, Stream& stream) {
  const int64_t size = bytes_of(view.spec.dtype);
  const auto row_bytes = static_cast<size_t>(view.k() * size);
  const std::byte* from = view.codes.data + rows.begin * view.codes.row_stride * size;
  if (view.codes.row_stride == view.k()) {
    stream.upload(device_dst, from, static_cast<size_t>(rows.size()) * row_bytes);
    return;
  }
  for (int64_t n = 0; n < rows.size(); ++n) {
    stream.upload(device_dst + static_cast<size_t>(n) * row_bytes,
                  from + n * view.codes.row_stride * size, row_bytes);
  }
}

PackedWeight pack_beside(const QuantView& view, const LinearProblem& problem, Device& device,
                         Stream& stream, uint64_t code_bytes) {
  OCTET_CHECK(view.n() == problem.n && view.k() == problem.k, "view {} for N={} K={}",
              to_string(view.codes.shape), problem.n, problem.k);
  const std::vector<float> scales =
      is_f8(view.spec.dtype) ? scale_grid(view, problem.weight.tile) : std::vector<float>{};
  const std::vector<float> bias = view.has_bias ? widen(view.bias) : std::vector<float>{};
  const size_t scale_bytes = align64(scales.size() * sizeof(float));
  const size_t bias_bytes = align64(bias.size() * sizeof(float));

  PackedWeight packed;
  packed.layout = kCheckpointLayout;
  packed.problem = problem;
  packed.storage = device.allocate(align64(code_bytes) + scale_bytes + bias_bytes + 64);
  auto* next = packed.storage.as<std::byte>();
  packed.codes = next;
  packed.row_stride = view.k();
  next += align64(code_bytes);
  if (!scales.empty()) {
    stream.upload(next, scales.data(), scales.size() * sizeof(float));
    packed.scales = reinterpret_cast<const float*>(next);
    packed.scale_cols = problem.weight.tile.tile_cols(view.k());
  }
  next += scale_bytes;
  if (!bias.empty()) {
    stream.upload(next, bias.data(), bias.size() * sizeof(float));
    packed.bias = reinterpret_cast<const float*>(next);
  }
  next += bias_bytes;
  if (view.has_input_scale) {
    const float scale = element(view.input_scale, 0);
    stream.upload(next, &scale, sizeof scale);
    packed.input_scale = reinterpret_cast<const float*>(next);
  }
  return packed;
}

PackedWeight pack_in_place(const QuantView& view, const LinearProblem& problem, Device& device,
                           Stream& stream) {
  const size_t code_bytes = copied_code_bytes(view, device);
  PackedWeight packed = pack_beside(view, problem, device, stream, code_bytes);
  if (code_bytes == 0) {
    packed.codes = view.codes.data;
    packed.row_stride = view.codes.row_stride;
  } else {
    upload_rows(view, {0, view.n()}, packed.storage.as<std::byte>(), stream);
  }
  return packed;
}

}  // namespace octet
