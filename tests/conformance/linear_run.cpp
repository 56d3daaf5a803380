#include "tests/conformance/linear_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "tests/conformance/devices.h"

namespace octet::conformance {
namespace {

// Written before a run to all that is not for the kernel; a NaN that no kernel computes.
constexpr uint32_t kGuardBits = 0x7FC0BEEFU;
constexpr int64_t kGuardFloats = 64;

bool is_guard(float value) {
  return std::bit_cast<uint32_t>(value) == kGuardBits;
}

}  // namespace

Output::Output(int64_t rows, int64_t cols, int64_t padding)
    : m(rows),
      n(cols),
      pad(padding),
      values_(static_cast<size_t>(rows * (cols + padding) + kGuardFloats),
              std::bit_cast<float>(kGuardBits)) {}

std::string Output::damage() const {
  if (scratch_overrun) return "the scratch was written behind its end";
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t col = 0; col < n; ++col) {
      if (is_guard(at(row, col))) return fmt::format("y[{}, {}] was not written", row, col);
    }
    for (int64_t col = n; col < stride(); ++col) {
      if (!is_guard(at(row, col))) return fmt::format("y[{}, {}] is not of this y", row, col);
    }
  }
  const auto end = values_.begin() + m * stride();
  if (!std::all_of(end, values_.end(), is_guard)) return "y was written behind its last row";
  return {};
}

bool Output::same_bits(const Output& other) const {
  return values_.size() == other.values_.size() &&
         std::memcmp(values_.data(), other.values_.data(), values_.size() * sizeof(float)) == 0;
}

bool Output::same_rows(const Output& other) const {
  for (int64_t row = 0; row < m; ++row) {
    if (std::memcmp(values_.data() + row * stride(), other.values_.data() + row * other.stride(),
                    static_cast<size_t>(n) * sizeof(float)) != 0) {
      return false;
    }
  }
  return true;
}

Runner::Runner(const LinearKernel& kernel, int threads)
    : kernel_(kernel), device_(make_device(threads)), stream_(device_->make_stream()) {}

Buffer Runner::copy(const void* data, size_t bytes) {
  Buffer buffer = device_->allocate(bytes);
  stream_->upload(buffer.data(), data, bytes);
  return buffer;
}

Output Runner::run(const LinearData& data, int64_t m, int64_t y_pad) {
  const LinearProblem& problem = data.problem();
  const PackedWeight weight = kernel_.pack(data.view(), problem, *device_, *stream_);
  const size_t scratch_bytes = kernel_.scratch_bytes == nullptr
                                   ? 0
                                   : kernel_.scratch_bytes(problem, m, stream_->pool().threads());
  // Scratch comes dirty: NaN everywhere, and a guard behind it.
  std::vector<uint8_t> dirt(scratch_bytes + 64, 0xFF);
  std::fill(dirt.end() - 64, dirt.end(), uint8_t{0x5A});
  const Buffer scratch = copy(dirt.data(), dirt.size());
  Output y(m, problem.n, y_pad);
  const Buffer y_device = copy(y.data(), y.bytes());
  const Buffer x = copy(data.input().data, data.input_bytes());
  const Buffer x_scales = copy(data.input().scales, data.input_scale_bytes());
  LinearInput input = data.input();
  input.data = x.data();
  if (input.scales != nullptr) input.scales = x_scales.as<float>();
  LinearArgs args{.weight = &weight,
                  .m = m,
                  .x = input,
                  .y = y_device.as<float>(),
                  .y_stride = y.stride(),
                  .scratch = scratch.data()};
  launch(kernel_, args, *stream_);
  stream_->download(y.data(), y_device.data(), y.bytes());
  stream_->download(dirt.data(), scratch.data(), dirt.size());
  const auto guard = dirt.end() - 64;
  y.scratch_overrun = !std::all_of(guard, dirt.end(), [](uint8_t b) { return b == 0x5A; });
  return y;
}

}  // namespace octet::conformance
