#include "tests/conformance/linear_case.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "base/split_mix.h"
#include "num/bf16.h"
#include "num/f8.h"

namespace octet::conformance {
namespace {

// About normal, in (-2, 2): the sum of uniforms.
double bell(SplitMix64& state) {
  return state.uniform() + state.uniform() + state.uniform() + state.uniform() - 2.0;
}

// Log-uniform between 2^low and 2^high.
double log_uniform(SplitMix64& state, double low, double high) {
  return std::exp2(low + (high - low) * state.uniform());
}

void store(std::byte* dst, DType dtype, double value) {
  const auto f = static_cast<float>(value);
  switch (dtype) {
    case DType::F32:
      std::memcpy(dst, &f, sizeof f);
      return;
    case DType::F16:
    case DType::BF16: {
      const uint16_t bits = dtype == DType::F16 ? f32_to_f16(f) : f32_to_bf16(f);
      std::memcpy(dst, &bits, sizeof bits);
      return;
    }
    case DType::F8E8M0:
      *dst = static_cast<std::byte>(127 + std::ilogb(f));
      return;
    default:
      break;
  }
  OCTET_CHECK(false, "store() of {}", name(dtype));
}

// A code that is finite; of one sign if asked.
uint8_t finite_code(SplitMix64& state, DType dtype, Values values) {
  for (;;) {
    auto code = static_cast<uint8_t>(state.bits() >> 56);
    if (values == Values::OneSign) code = static_cast<uint8_t>(0x30 + code % 16);
    if (std::isfinite(f8_table(dtype)[code])) return code;
  }
}

// A weight that is not quantised; one in eight is a subnormal of binary16.
double plain_weight(SplitMix64& state, DType dtype, Values values) {
  if (values == Values::OneSign) return 0.5 + state.uniform();
  if (dtype == DType::F16 && state.bits() % 8 == 0) return bell(state) * 0x1p-15;
  return bell(state) * log_uniform(state, -6, 2);
}

ConstTensorView tensor(const std::vector<std::byte>& bytes, DType dtype, int64_t rows,
                       int64_t cols) {
  return {bytes.data(), dtype, Shape{rows, cols}, cols};
}

void resize(std::vector<std::byte>& bytes, int64_t elements, DType dtype) {
  bytes.assign(static_cast<size_t>(elements * bytes_of(dtype)), std::byte{0});
}

}  // namespace

LinearData::LinearData(const LinearCase& c, int64_t max_m, uint64_t seed) : random_state_(seed) {
  fill_weight(c);
  problem_ = {.scheme = c.scheme,
              .n = view_.n(),
              .k = view_.k(),
              .weight = view_.spec,
              .activation = c.activation,
              .input = c.input};
  if (c.cols && problem_.activation && problem_.activation->tile.cols != kWhole) {
    ScaleTile& tile = problem_.activation->tile;
    tile.first_col = c.cols->begin % tile.cols;
  }
  fill_input(c, max_m);
}

void LinearData::fill_weight(const LinearCase& c) {
  const ScaleTile& tile = c.weight.tile;
  view_.spec = c.weight;
  resize(codes_, c.n * c.k, c.weight.dtype);
  for (int64_t i = 0; i < c.n * c.k; ++i) {
    std::byte* dst = codes_.data() + i * bytes_of(c.weight.dtype);
    if (is_f8(c.weight.dtype)) {
      *dst = std::byte{finite_code(random_state_, c.weight.dtype, c.values)};
    } else {
      store(dst, c.weight.dtype, plain_weight(random_state_, c.weight.dtype, c.values));
    }
  }
  view_.codes = tensor(codes_, c.weight.dtype, c.n, c.k);
  if (is_f8(c.weight.dtype)) {
    const int64_t rows = tile.tile_rows(c.n), cols = tile.tile_cols(c.k);
    resize(scales_, rows * cols, c.weight.scale_dtype);
    for (int64_t i = 0; i < rows * cols; ++i) {
      store(scales_.data() + i * bytes_of(c.weight.scale_dtype), c.weight.scale_dtype,
            c.values == Values::OneSign ? 1.0 : log_uniform(random_state_, -12, 2));
    }
    view_.scales = tensor(scales_, c.weight.scale_dtype, rows, cols);
  }
  if (c.bias) {
    resize(bias_, c.n, DType::BF16);
    for (int64_t i = 0; i < c.n; ++i) {
      store(bias_.data() + i * 2, DType::BF16, bell(random_state_));
    }
    view_.bias = {bias_.data(), DType::BF16, Shape{c.n}, 0};
    view_.has_bias = true;
  }
  view_ = slice(view_, c.rows.value_or(Range{0, c.n}), c.cols.value_or(Range{0, c.k}));
}

void LinearData::fill_input(const LinearCase& c, int64_t max_m) {
  const DType dtype = c.activation ? c.activation->dtype : c.input;
  const int64_t k = problem_.k, stride = k + c.x_pad;
  resize(x_, max_m * stride, dtype);
  for (int64_t m = 0; m < max_m; ++m) {
    const double row = c.values == Values::Wide ? log_uniform(random_state_, -60, 60) : 1.0;
    for (int64_t i = 0; i < k; ++i) {
      std::byte* dst = x_.data() + (m * stride + i) * bytes_of(dtype);
      if (c.activation) {
        *dst = std::byte{finite_code(random_state_, dtype, c.values)};
      } else {
        const double value =
            c.values == Values::OneSign ? 0.5 + random_state_.uniform() : bell(random_state_);
        store(dst, dtype, value * row);
      }
    }
    // What lies between the rows must not be read: signalling noise would show.
    for (int64_t i = k; i < stride; ++i) {
      std::memset(x_.data() + (m * stride + i) * bytes_of(dtype), 0xFF,
                  static_cast<size_t>(bytes_of(dtype)));
    }
  }
  input_.data = x_.data();
  input_.row_stride = stride;
  if (!c.activation) return;
  const bool one = problem_.activation->tile.granularity() == Granularity::Tensor;
  const int64_t cols = problem_.activation->tile.tile_cols(k);
  x_scales_.resize(static_cast<size_t>(one ? 1 : max_m * cols));
  for (float& scale : x_scales_) {
    scale =
        c.values == Values::OneSign ? 1.0F : static_cast<float>(log_uniform(random_state_, -8, 3));
  }
  input_.scales = x_scales_.data();
}

uint8_t& LinearData::weight_code(int64_t n, int64_t k) {
  const std::byte* p = view_.codes.data + n * view_.codes.row_stride + k;
  return *reinterpret_cast<uint8_t*>(codes_.data() + (p - codes_.data()));
}

void LinearData::set_input(int64_t m, int64_t k, float value) {
  const DType dtype = problem_.activation ? problem_.activation->dtype : problem_.input;
  std::byte* dst = x_.data() + (m * input_.row_stride + k) * bytes_of(dtype);
  if (is_f8(dtype)) {
    *dst = std::byte{f32_to_f8(dtype, value)};
  } else {
    store(dst, dtype, value);
  }
}

LinearReference LinearData::expected(int64_t m) const {
  std::vector<int64_t> outputs(static_cast<size_t>(problem_.n));
  std::iota(outputs.begin(), outputs.end(), 0);
  ThreadPool pool(1);
  return linear_reference(view_, problem_, input_, m, outputs, pool);
}

}  // namespace octet::conformance
