#include "evaluate/verify_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/split_mix.h"
#include "num/error_bound.h"
#include "op/linear_reference.h"
#include "op/quantize_reference.h"

namespace octet {
namespace {

constexpr int64_t kMaxTokens = std::end(LayerChecker::kTokens)[-1];

// Products in double precision per run without `all`: about 0.2 s of one core. For one token that
// is every output of matrices up to 2^28 weights.
constexpr int64_t kProducts = int64_t{1} << 28;
constexpr int64_t kFewestOutputs = 64;

// Laid over y before a run; a NaN that no kernel computes.
constexpr uint32_t kUnwritten = 0x7FC0BEEFU;

// Tokens with the spread that inputs of trained decoders have: channels of unequal size, one in 256
// some 30 times larger, and tokens of unequal size. A static scale is used to its edge: one token
// in four goes a little past its largest code and saturates.
std::vector<float> random_tokens(int64_t k, const Linear& layer, uint64_t seed) {
  constexpr double kOutlier = 30;
  SplitMix64 random(seed);
  std::vector<double> channel(static_cast<size_t>(k));
  for (double& gain : channel) {
    gain = std::exp(0.4 * random.bell());
    if (random.bits() % 256 == 0) gain *= kOutlier;
  }
  std::vector<float> x(static_cast<size_t>(kMaxTokens * k));
  for (int64_t m = 0; m < kMaxTokens; ++m) {
    float* row = x.data() + m * k;
    double amax = 0;
    for (int64_t i = 0; i < k; ++i) {
      row[i] = static_cast<float>(channel[static_cast<size_t>(i)] * random.bell());
      amax = std::max(amax, std::fabs(double{row[i]}));
    }
    double size = std::exp2(2 * random.uniform() - 1);
    if (layer.static_scale && amax > 0) {
      const double largest = info(layer.input.dtype).max_finite * double{*layer.static_scale};
      size = largest / amax * (m % 4 == 3 ? 1.05 : 0.25 + 0.5 * random.uniform());
    }
    for (int64_t i = 0; i < k; ++i) row[i] = static_cast<float>(row[i] * size);
  }
  return x;
}

// How many outputs of m tokens a number of products pays for.
int64_t outputs_of(int64_t products, int64_t k, int64_t m) {
  return std::max(kFewestOutputs, products / (m * k));
}

// Which of n outputs are compared with m tokens: all of them where that is cheap enough, else the
// first, the last and one of each of equal stretches between.
std::vector<int64_t> sampled_outputs(int64_t n, int64_t k, int64_t m,
                                     const LayerCheckOptions& options) {
  const int64_t wanted = options.all ? n : std::min(n, outputs_of(kProducts, k, m));
  std::vector<int64_t> outputs(static_cast<size_t>(wanted));
  std::iota(outputs.begin(), outputs.end(), 0);
  if (wanted == n) return outputs;
  SplitMix64 random(options.seed);
  for (int64_t i = 1; i + 1 < wanted; ++i) {
    const int64_t begin = n * i / wanted;
    const int64_t end = n * (i + 1) / wanted;
    outputs[static_cast<size_t>(i)] =
        begin + static_cast<int64_t>(random.bits() % static_cast<uint64_t>(end - begin));
  }
  outputs.back() = n - 1;
  return outputs;
}

// x of a layer, on the host and on the device.
struct Input {
  std::vector<float> x;  // [kMaxTokens, K] before rounding and quantising
  QuantizedInput made;   // by the kernel; empty when the layer takes float32
  float static_scale = 0;
  Buffer device_x, device_codes, device_scales;
  LinearInput host, device;
  std::string failure;  // of the kernel that made it
};

class LayerRun {
 public:
  LayerRun(const Linear& layer, const QuantView& record, Device& device, Stream& stream,
           ThreadPool& pool, const LayerCheckOptions& options)
      : layer_(layer),
        record_(record),
        problem_(layer.weight.problem),
        device_(device),
        stream_(stream),
        pool_(pool),
        options_(options) {}

  LayerCheck run() {
    make_input();
    check_.quantize_failure = input_.failure;
    std::vector<float> before;
    for (const int64_t m : LayerChecker::kTokens) {
      options_.tick();
      const std::vector<float> y = outputs(m);
      compare(m, y);
      check_rows(before, m, y);
      before = y;
    }
    return std::move(check_);
  }

 private:
  Buffer upload(const void* data, size_t bytes) {
    Buffer buffer = device_.allocate(std::max<size_t>(bytes, 1));
    stream_.upload(buffer.data(), data, bytes);
    return buffer;
  }

  void make_input() {
    const int64_t k = problem_.k;
    input_.x = random_tokens(k, layer_, options_.seed);
    input_.device_x = upload(input_.x.data(), input_.x.size() * sizeof(float));
    input_.host = {input_.x.data(), k, nullptr};
    input_.device = {input_.device_x.data(), k, nullptr};
    if (layer_.quantize != nullptr) quantize_input();
  }

  void quantize_input() {
    const int64_t k = problem_.k;
    const QuantSpec& spec = layer_.input;
    input_.static_scale = layer_.static_scale.value_or(0);
    const QuantizedInput expected =
        quantize_reference(input_.x.data(), kMaxTokens, k, spec, input_.static_scale);
    input_.made = expected;
    const size_t scale_bytes = expected.scales.size() * sizeof(float);
    input_.device_codes = device_.allocate(expected.codes.size());
    input_.device_scales = device_.allocate(scale_bytes + sizeof(float));
    launch(*layer_.quantize,
           Quantize::Args{input_.device_x.as<float>(), k, kMaxTokens, k, spec,
                          layer_.weight.input_scale, input_.device_codes.data(),
                          input_.device_scales.as<float>()},
           stream_);
    stream_.download(input_.made.codes.data(), input_.device_codes.data(), expected.codes.size());
    if (scale_bytes != 0) {
      stream_.download(input_.made.scales.data(), input_.device_scales.data(), scale_bytes);
    }
    stream_.wait();
    compare_input(expected);
    const bool is_static = layer_.static_scale.has_value();
    input_.host = {input_.made.codes.data(), k,
                   is_static ? &input_.static_scale : input_.made.scales.data()};
    input_.device = {input_.device_codes.data(), k,
                     is_static ? layer_.weight.input_scale : input_.device_scales.as<float>()};
    if (!is_f8(spec.dtype)) input_.host.scales = input_.device.scales = nullptr;
  }

  void compare_input(const QuantizedInput& expected) {
    const auto differ =
        std::mismatch(expected.codes.begin(), expected.codes.end(), input_.made.codes.begin());
    if (differ.first != expected.codes.end()) {
      const int64_t at = (differ.first - expected.codes.begin()) / bytes_of(layer_.input.dtype);
      input_.failure =
          fmt::format("code [{}, {}] of {} tokens differs: input {:.9g}, got 0x{:02X}",
                      at / problem_.k, at % problem_.k, kMaxTokens,
                      input_.x[static_cast<size_t>(at)], std::to_integer<int>(*differ.second));
      return;
    }
    for (size_t i = 0; i < expected.scales.size(); ++i) {
      const float want = expected.scales[i];
      const float got = input_.made.scales[i];
      if (std::memcmp(&want, &got, sizeof want) == 0 || (std::isnan(want) && std::isnan(got))) {
        continue;
      }
      input_.failure = fmt::format("scale {} is {:.9g}, expected {:.9g}", i, got, want);
      return;
    }
  }

  // y of the first m tokens, [m, N].
  std::vector<float> outputs(int64_t m) {
    const LinearKernel& kernel = *layer_.kernel;
    std::vector<float> y(static_cast<size_t>(m * problem_.n), std::bit_cast<float>(kUnwritten));
    const size_t bytes = y.size() * sizeof(float);
    const Buffer device_y = upload(y.data(), bytes);
    const Buffer scratch =
        device_.allocate(1 + (kernel.scratch_bytes == nullptr
                                  ? 0
                                  : kernel.scratch_bytes(problem_, m, stream_.pool().threads())));
    launch(kernel,
           LinearArgs{&layer_.weight, m, input_.device, device_y.as<float>(), problem_.n,
                      scratch.data()},
           stream_);
    stream_.download(y.data(), device_y.data(), bytes);
    stream_.wait();
    return y;
  }

  // In slices of outputs that take a fraction of a second each.
  void compare(int64_t m, const std::vector<float>& y) {
    const std::vector<int64_t> sample = sampled_outputs(problem_.n, problem_.k, m, options_);
    const auto slice = static_cast<size_t>(outputs_of(kProducts, problem_.k, m));
    for (size_t begin = 0; begin < sample.size(); begin += slice) {
      const auto part = std::span(sample).subspan(begin, std::min(slice, sample.size() - begin));
      options_.tick();
      compare_outputs(m, part, y);
      if (problem_.activation && m == LayerChecker::kTokens[1]) compare_unquantised(m, part, y);
    }
  }

  void compare_outputs(int64_t m, std::span<const int64_t> sample, const std::vector<float>& y) {
    const LinearReference exact =
        linear_reference(record_, problem_, input_.host, m, sample, pool_);
    const int64_t chain = longest_chain(*layer_.kernel, problem_);
    const auto count = static_cast<int64_t>(sample.size());
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<size_t>(row * count + i);
        const int64_t n = sample[static_cast<size_t>(i)];
        compare_value({m, row, n}, y[static_cast<size_t>(row * problem_.n + n)], exact.y[at],
                      bound(chain, exact.magnitude[at]) + exact.underflow[at]);
      }
    }
  }

  static double bound(int64_t chain, double magnitude) {
    return std::min(probable_bound(chain, magnitude), worst_bound(chain, magnitude));
  }

  struct Place {
    int64_t m, row, n;
  };

  void compare_value(Place place, double got, double exact, double bound) {
    ++check_.values;
    if (!std::isfinite(exact)) {
      if (std::isnan(exact) ? !std::isnan(got) : got != exact) {
        fail(place, got, exact, "a value that is not finite is expected");
      }
      return;
    }
    const double error = std::fabs(got - exact);
    check_.signal += exact * exact;
    check_.noise += std::isfinite(error) ? error * error : exact * exact;
    const double ratio = error == 0 ? 0 : error / bound;
    if (!(ratio <= 1)) {
      fail(place, got, exact,
           std::isfinite(ratio) ? fmt::format("error {:.2g} times its bound", ratio)
                                : std::string("a value that is not finite"));
    }
    check_.worst = std::max(check_.worst, std::isnan(ratio) ? HUGE_VAL : ratio);
  }

  // The worst value is the one to report.
  void fail(Place place, double got, double exact, std::string reason) {
    const double error = std::fabs(got - exact);
    const double weight = std::isfinite(error) ? error : HUGE_VAL;
    if (!check_.failure.empty() && weight <= failed_) return;
    failed_ = weight;
    check_.failure = fmt::format("y[{}, {}] of {} tokens is {:.9g}, expected {:.9g}: {}", place.row,
                                 place.n, place.m, got, exact, reason);
    check_.reason = std::move(reason);
  }

  // What quantising the input costs, beside what the kernel adds.
  void compare_unquantised(int64_t m, std::span<const int64_t> sample,
                           const std::vector<float>& y) {
    LinearProblem plain = problem_;
    plain.activation.reset();
    plain.input = DType::F32;
    const LinearInput x{input_.x.data(), problem_.k, nullptr};
    const LinearReference exact = linear_reference(record_, plain, x, m, sample, pool_);
    for (size_t at = 0; at < exact.y.size(); ++at) {
      const size_t row = at / sample.size();
      const auto n = static_cast<size_t>(sample[at % sample.size()]);
      const double got = y[row * static_cast<size_t>(problem_.n) + n];
      if (!std::isfinite(exact.y[at]) || !std::isfinite(got)) continue;
      check_.input_signal += exact.y[at] * exact.y[at];
      check_.input_noise += (got - exact.y[at]) * (got - exact.y[at]);
    }
  }

  // Where the kernel promises that, the rows of fewer tokens have the same bits among more: an
  // output that was left out of a larger sample is then known from the smaller.
  void check_rows(const std::vector<float>& before, int64_t m, const std::vector<float>& y) {
    if (!layer_.kernel->error.batch_invariant) return;
    for (size_t i = 0; i < before.size(); ++i) {
      if (std::memcmp(&before[i], &y[i], sizeof(float)) == 0) continue;
      if (std::isnan(before[i]) && std::isnan(y[i])) continue;
      const auto at = static_cast<int64_t>(i);
      fail({m, at / problem_.n, at % problem_.n}, y[i], before[i],
           "a row differs from the same row among fewer tokens");
      return;
    }
  }

  const Linear& layer_;
  const QuantView& record_;
  const LinearProblem& problem_;
  Device& device_;
  Stream& stream_;
  ThreadPool& pool_;
  const LayerCheckOptions& options_;
  Input input_;
  LayerCheck check_;
  double failed_ = 0;
};

}  // namespace

LayerCheck LayerChecker::check(const Linear& layer, const QuantView& record,
                               const LayerCheckOptions& options) {
  return LayerRun(layer, record, device_, *stream_, pool_, options).run();
}

}  // namespace octet
