#include "op/linear_reference.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "num/error_bound.h"
#include "num/f8.h"

namespace octet {
namespace {

// Tokens summed side by side: chains of additions that do not wait for each other.
constexpr int64_t kTokens = 4;

constexpr double kSmallestNormal = 0x1p-126;

// What a stored value and its scale weigh in LinearReference::underflow.
double weighed(double value, double scale) {
  return (1 + std::fabs(value)) * (1 + std::fabs(scale));
}

// The scale of element (row, col) of x; 1 without one.
double input_scale(const LinearProblem& problem, const float* scales, int64_t row, int64_t col) {
  if (!problem.activation) return 1;
  const ScaleTile& tile = problem.activation->tile;
  const bool one = tile.granularity() == Granularity::Tensor;
  return scales[one ? 0 : row * tile.tile_cols(problem.k) + tile.tile_col(col)];
}

// x as it counts, decoded and times its scales, [m, K]; and the largest weighed() of each token.
struct Inputs {
  std::vector<double> values, weight;
};

Inputs input_values(const LinearProblem& problem, const LinearInput& x, int64_t m) {
  const DType dtype = problem.activation ? problem.activation->dtype : problem.input;
  const ConstTensorView view{static_cast<const std::byte*>(x.data), dtype, Shape{m, problem.k},
                             x.row_stride};
  Inputs inputs;
  inputs.values.reserve(static_cast<size_t>(m * problem.k));
  for (int64_t row = 0; row < m; ++row) {
    double largest = 0;
    for (int64_t col = 0; col < problem.k; ++col) {
      const double value = element(view, row * view.row_stride + col);
      const double scale = input_scale(problem, x.scales, row, col);
      largest = std::max(largest, weighed(value, scale));
      inputs.values.push_back(value * scale);
    }
    inputs.weight.push_back(largest);
  }
  return inputs;
}

// First column behind the tile that holds column `col`.
int64_t tile_end(const ScaleTile& tile, int64_t col, int64_t k) {
  return tile.cols == kWhole ? k
                             : std::min(k, (tile.tile_col(col) + 1) * tile.cols - tile.first_col);
}

// Row `row` of W to `out`. Returns the sum of weighed() over it.
double decode_row(const QuantView& weight, int64_t row, std::vector<double>& out) {
  const int64_t k = weight.k();
  double sum = 0;
  const int64_t first = row * weight.codes.row_stride;
  if (!is_f8(weight.spec.dtype)) {
    for (int64_t col = 0; col < k; ++col) {
      const double value = element(weight.codes, first + col);
      sum += weighed(value, 1);
      out[static_cast<size_t>(col)] = value;
    }
    return sum;
  }
  const ScaleTile& tile = weight.spec.tile;
  const std::array<float, 256>& table = f8_table(weight.spec.dtype);
  const auto* codes = weight.codes.as<uint8_t>() + first;
  for (int64_t begin = 0; begin < k;) {
    const int64_t end = tile_end(tile, begin, k);
    const double scale = element(
        weight.scales, tile.tile_row(row) * weight.scales.row_stride + tile.tile_col(begin));
    for (int64_t col = begin; col < end; ++col) {
      sum += weighed(table[codes[col]], scale);
      out[static_cast<size_t>(col)] = table[codes[col]] * scale;
    }
    begin = end;
  }
  return sum;
}

// Sums of up to kTokens tokens at x, K apart, with one row of W; each in order of K from `bias` on.
void dot(const double* x, int64_t tokens, const std::vector<double>& w, double bias, double* y,
         double* magnitude) {
  std::array<double, kTokens> sum{}, sum_abs{};
  sum.fill(bias);
  sum_abs.fill(std::fabs(bias));
  const size_t k = w.size();
  if (tokens == kTokens) {
    for (size_t i = 0; i < k; ++i) {
      for (size_t t = 0; t < kTokens; ++t) {
        const double term = x[t * k + i] * w[i];
        sum[t] += term;
        sum_abs[t] += std::fabs(term);
      }
    }
  } else {
    for (size_t t = 0; t < static_cast<size_t>(tokens); ++t) {
      for (size_t i = 0; i < k; ++i) {
        const double term = x[t * k + i] * w[i];
        sum[t] += term;
        sum_abs[t] += std::fabs(term);
      }
    }
  }
  std::copy_n(sum.begin(), tokens, y);
  std::copy_n(sum_abs.begin(), tokens, magnitude);
}

}  // namespace

LinearReference linear_reference(const QuantView& weight, const LinearProblem& problem,
                                 const LinearInput& x, int64_t m, std::span<const int64_t> outputs,
                                 ThreadPool& pool) {
  const Inputs inputs = input_values(problem, x, m);
  const auto count = static_cast<int64_t>(outputs.size());
  LinearReference result;
  result.y.resize(static_cast<size_t>(m * count));
  result.magnitude.resize(result.y.size());
  result.underflow.resize(result.y.size());
  pool.parallel_for(count, 8, [&](int64_t begin, int64_t end) {
    std::vector<double> w(static_cast<size_t>(weight.k()));
    std::array<double, kTokens> y{}, magnitude{};
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = outputs[static_cast<size_t>(i)];
      const double sum = decode_row(weight, row, w);
      const double bias = weight.has_bias ? element(weight.bias, row) : 0.0;
      for (int64_t first = 0; first < m; first += kTokens) {
        const int64_t tokens = std::min(kTokens, m - first);
        dot(inputs.values.data() + first * weight.k(), tokens, w, bias, y.data(), magnitude.data());
        for (int64_t t = 0; t < tokens; ++t) {
          const auto at = static_cast<size_t>((first + t) * count + i);
          result.y[at] = y[static_cast<size_t>(t)];
          result.magnitude[at] = magnitude[static_cast<size_t>(t)];
          const double input = inputs.weight[static_cast<size_t>(first + t)];
          result.underflow[at] = kSmallestNormal * (2 * input * sum + 1);
        }
      }
    }
  });
  return result;
}

ScaleStretches scale_stretches(const LinearProblem& problem, bool of_weight_alone) {
  ScaleStretches result;
  int64_t begin = 0;
  for (int64_t k = 0; k < problem.k; ++k) {
    const auto changes = [&](const ScaleTile& tile) {
      return tile.tile_col(k) != tile.tile_col(k - 1);
    };
    if (k == 0 || (is_f8(problem.weight.dtype) && changes(problem.weight.tile)) ||
        (!of_weight_alone && problem.activation && changes(problem.activation->tile))) {
      ++result.count;
      begin = k;
    }
    result.longest = std::max(result.longest, k + 1 - begin);
  }
  return result;
}

int64_t longest_chain(const LinearKernel& kernel, const LinearProblem& problem) {
  const ErrorModel& error = kernel.error;
  const ScaleStretches stretches = scale_stretches(problem, error.scales_input_first);
  return longest_chain(DotShape{.segments = stretches.count,
                                .longest = stretches.longest,
                                .lanes = error.lanes,
                                .run = error.run,
                                .roundings = error.roundings,
                                .wide = error.wide});
}

}  // namespace octet
