// Speed of OpenCL linear kernels beside the CPU kernel of this machine for the same scheme, in turn
// and in the same memory size: on a runtime for CPUs the ratio says what the way through OpenCL
// costs. With --beside it is another OpenCL kernel and scale geometry instead, as channels beside
// blocks. A sample is one pass over all layers, queued at once and waited for at the end.
#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "bench/data.h"
#include "device/opencl.h"
#include "op/linear.h"

namespace octet::bench {
namespace {

struct Options {
  std::string kernel = "f8";  // part of the names to run
  std::string cpu = "";       // part of the name of the CPU kernel; empty: the preferred one
  std::string beside = "";    // NAME:WEIGHTS, an OpenCL kernel to compare with instead
  std::string weights = "row,block128";
  std::string tokens = "1";
  int64_t n = 4096, k = 4096;
  int device = 0;
  int rounds = 15;
  int64_t mib = 256;  // of weights, read in turn
};

// The scheme of a kernel with weights of one scale geometry.
LinearProblem problem_of(const LinearKernel& kernel, const ScaleTile& tile, int64_t n, int64_t k) {
  LinearProblem problem{
      .scheme = kernel.scheme, .n = n, .k = k, .weight = {.dtype = DType::F8E4M3, .tile = tile}};
  if (kernel.scheme == SchemeId::W8A8) {
    problem.activation =
        QuantSpec{.dtype = DType::F8E4M3,
                  .tile = tile.cols != kWhole ? ScaleTile::group(tile.cols) : ScaleTile::row(),
                  .timing = ScaleTiming::Dynamic};
  } else if (!kernel.caps.inputs.has(DType::F32)) {
    problem.input = DType::BF16;
  }
  return problem;
}

// Layers of one problem on a device, packed as the kernel wants them.
class Layers {
 public:
  Layers(const LinearKernel& kernel, const LinearProblem& problem, int64_t m, int64_t count,
         Device& device)
      : kernel_(kernel), problem_(problem), m_(m), stream_(device.make_stream()) {
    std::vector<std::byte> codes(static_cast<size_t>(problem.n * problem.k));
    fill_weights(codes.data(), problem.n * problem.k, problem.weight.dtype);
    const ScaleTile& tile = problem.weight.tile;
    const int64_t rows = tile.tile_rows(problem.n), cols = tile.tile_cols(problem.k);
    const std::vector<float> scales(static_cast<size_t>(rows * cols), 0.01F);
    QuantView view;
    view.spec = problem.weight;
    view.codes = {codes.data(), problem.weight.dtype, Shape{problem.n, problem.k}, problem.k};
    view.scales = {reinterpret_cast<const std::byte*>(scales.data()), DType::F32, Shape{rows, cols},
                   cols};
    for (int64_t i = 0; i < count; ++i) {
      // A device that reads the host's memory keeps the codes in place: every layer its own.
      QuantView own = view;
      if (device.reads_host_memory()) {
        host_.push_back(codes);
        own.codes.data = host_.back().data();
      }
      weights_.push_back(kernel.pack(own, problem, device, *stream_));
    }
    const DType dtype = problem.activation ? problem.activation->dtype : problem.input;
    std::vector<std::byte> x(static_cast<size_t>(m * problem.k * bytes_of(dtype)));
    fill_inputs(x.data(), m * problem.k, dtype);
    x_ = device.allocate(x.size());
    stream_->upload(x_.data(), x.data(), x.size());
    if (problem.activation) {
      const std::vector<float> ones(
          static_cast<size_t>(m * problem.activation->tile.tile_cols(problem.k)), 0.01F);
      x_scales_ = device.allocate(ones.size() * sizeof(float));
      stream_->upload(x_scales_.data(), ones.data(), ones.size() * sizeof(float));
    }
    y_ = device.allocate(static_cast<size_t>(m * problem.n) * sizeof(float));
    scratch_ = device.allocate(kernel.scratch_bytes == nullptr
                                   ? 64
                                   : kernel.scratch_bytes(problem, m, stream_->pool().threads()));
    stream_->wait();
  }

  // Seconds of one pass.
  double pass() {
    timespec begin{}, end{};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (const PackedWeight& weight : weights_) {
      launch(kernel_,
             LinearArgs{.weight = &weight,
                        .m = m_,
                        .x = {x_.data(), problem_.k, x_scales_.as<float>()},
                        .y = y_.as<float>(),
                        .y_stride = problem_.n,
                        .scratch = scratch_.data()},
             *stream_);
    }
    stream_->wait();
    clock_gettime(CLOCK_MONOTONIC, &end);
    return static_cast<double>(end.tv_sec - begin.tv_sec) +
           static_cast<double>(end.tv_nsec - begin.tv_nsec) * 1e-9;
  }

 private:
  const LinearKernel& kernel_;
  LinearProblem problem_;
  int64_t m_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::vector<std::byte>> host_;
  std::vector<PackedWeight> weights_;
  Buffer x_, x_scales_, y_, scratch_;
};

// The CPU kernel that takes these weights with the scheme: the preferred one, or one by name.
const LinearKernel* cpu_kernel(const LinearKernel& like, const ScaleTile& tile,
                               const Options& options, const DeviceInfo& info) {
  const LinearKernel* best = nullptr;
  for (const LinearKernel* kernel : kernels<LinearKernel>()) {
    if (kernel->scheme != like.scheme || kernel->device != DeviceKind::Cpu) continue;
    if (kernel->name.find(options.cpu) == std::string_view::npos) continue;
    const LinearProblem problem = problem_of(*kernel, tile, options.n, options.k);
    if (!refusals(*kernel, problem, info).empty()) continue;
    if (best == nullptr || kernel->preference > best->preference) best = kernel;
  }
  return best;
}

// What a kernel is compared with.
struct Beside {
  const LinearKernel* kernel = nullptr;
  ScaleTile tile;
  Device* device = nullptr;
};

Beside beside_of(const LinearKernel& kernel, const ScaleTile& tile, const Options& options,
                 Device& device, Device& cpu) {
  if (options.beside.empty()) return {cpu_kernel(kernel, tile, options, cpu.info()), tile, &cpu};
  const size_t colon = options.beside.find(':');
  for (const LinearKernel* other : kernels<LinearKernel>()) {
    if (other->name == options.beside.substr(0, colon))
      return {other, tile_of(options.beside.substr(colon + 1)), &device};
  }
  throw_error(Code::BadInput, fmt::format("--beside {}", options.beside), "NAME:WEIGHTS");
}

void measure(const LinearKernel& kernel, const std::string& weights, int64_t m,
             const Options& options, Device& device, Device& cpu) {
  const ScaleTile tile = tile_of(weights);
  const LinearProblem problem = problem_of(kernel, tile, options.n, options.k);
  if (!refusals(kernel, problem, device.info()).empty()) return;
  const Beside beside = beside_of(kernel, tile, options, device, cpu);
  if (beside.kernel == nullptr) return;
  const int64_t layer = options.n * options.k;
  const int64_t count = std::max<int64_t>(1, (options.mib << 20) / layer);
  Layers subject(kernel, problem, m, count, device);
  Layers other(*beside.kernel, problem_of(*beside.kernel, beside.tile, options.n, options.k), m,
               count, *beside.device);
  Samples mine, theirs;
  subject.pass();  // the first pass compiles
  other.pass();
  for (int round = 0; round < options.rounds; ++round) {
    mine.seconds.push_back(subject.pass());
    theirs.seconds.push_back(other.pass());
  }
  const double flop = 2.0 * static_cast<double>(m * layer * count);
  const auto bytes = static_cast<double>(layer * count);
  fmt::print("{} {} N={} K={} M={} on \"{}\"\n", kernel.name, weights, options.n, options.k, m,
             device.info().name);
  const auto line = [&](const char* what, double a, double b) {
    fmt::print("  {:6} {:7.2f} GB/s {:7.1f} GFLOP/s = {:.2f} of {} ({:.2f} GB/s)\n", what,
               bytes / a * 1e-9, flop / a * 1e-9, b / a, beside.kernel->name, bytes / b * 1e-9);
  };
  line("best", mine.best(), theirs.best());
  line("median", mine.median(), theirs.median());
  std::fflush(stdout);
}

Options parse(int argc, char** argv) {
  Options o;
  read_flags(argc, argv,
             {{"--kernel", &o.kernel},
              {"--cpu", &o.cpu},
              {"--beside", &o.beside},
              {"--weights", &o.weights},
              {"--m", &o.tokens},
              {"--n", &o.n},
              {"--k", &o.k},
              {"--device", &o.device},
              {"--rounds", &o.rounds},
              {"--mib", &o.mib}});
  return o;
}

int main_of(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const auto device = make_opencl_device(
      options.device, std::filesystem::temp_directory_path() / "octet-opencl-tests");
  const DeviceInfo info = probe_cpu();
  const auto cpu = make_cpu_device(info, info.threads);
  for (const LinearKernel* kernel : kernels<LinearKernel>()) {
    if (kernel->device != DeviceKind::OpenCl || kernel->scheme == SchemeId::Plain) continue;
    if (kernel->name.find(options.kernel) == std::string_view::npos) continue;
    for (const std::string& weights : words(options.weights)) {
      for (const std::string& m : words(options.tokens))
        measure(*kernel, weights, std::stoll(m), options, *device, *cpu);
    }
  }
  return 0;
}

}  // namespace
}  // namespace octet::bench

int main(int argc, char** argv) {
  try {
    return octet::bench::main_of(argc, argv);
  } catch (const octet::Error& error) {
    fmt::print(stderr, "opencl_bench: {}\n  hint: {}\n", error.message(), error.hint());
    return octet::exit_status(error.code());
  }
}
