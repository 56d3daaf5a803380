// Speed of linear kernels as a share of what the machine gives in the same minute: the plain read
// for few tokens, the peak of the kernel's own multiply-add for many. Subject, reads and peak
// alternate sample by sample on pinned threads; best is compared with best and median with median.
#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/data.h"
#include "bench/roof.h"
#include "op/linear.h"

namespace octet::bench {
namespace {

struct Options {
  std::string kernel = "f8.avx";  // part of the names to run
  std::string weights = "row,block128";
  std::string tokens = "1";
  int64_t n = 4096, k = 4096;
  int threads = 2;
  int rounds = 25;
  int64_t mib = 512;         // of weights, read in turn
  bool small_pages = false;  // 4 KiB, as a mapped file may have; else 2 MiB
  bool cpu_clock = false;    // CPU time of the thread, for arithmetic on a busy machine; 1 thread
};

// Memory that is not shared with anything and has the pages that were asked for.
std::byte* map_pages(size_t bytes, bool small_pages) {
  constexpr size_t kHuge = size_t{2} << 20;
  void* p =
      mmap(nullptr, bytes + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw_error(Code::Environment, fmt::format("no memory for {} bytes", bytes));
  auto address = (reinterpret_cast<uintptr_t>(p) + kHuge - 1) & ~(kHuge - 1);
  auto* data = reinterpret_cast<std::byte*>(address);
  madvise(data, bytes, small_pages ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
  return data;
}

double now(const Options& options) {
  timespec t{};
  clock_gettime(options.cpu_clock ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

template <class F>
void sample(const Options& options, Samples& samples, const F& f) {
  const double begin = now(options);
  f();
  samples.seconds.push_back(now(options) - begin);
}

// What one line of the report measures: a weight repeated until no cache holds it, and inputs.
class Subject {
 public:
  Subject(const LinearKernel& kernel, const std::string& weights, const Options& options,
          Device& device, Stream& stream)
      : kernel_(kernel), device_(device), stream_(stream) {
    QuantSpec spec;
    for (DType dtype : {DType::BF16, DType::F16, DType::F32}) {
      if (weights == name(dtype)) spec.dtype = dtype;
    }
    if (kernel.scheme != SchemeId::Plain) spec = {DType::F8E4M3, tile_of(weights)};
    problem_ = {.scheme = kernel.scheme, .n = options.n, .k = options.k, .weight = spec};
    if (kernel.scheme == SchemeId::W8A8) {
      const bool grouped = spec.tile.cols != kWhole;
      problem_.activation =
          QuantSpec{.dtype = DType::F8E4M3,
                    .tile = grouped ? ScaleTile::group(spec.tile.cols) : ScaleTile::row(),
                    .timing = ScaleTiming::Dynamic};
    } else if (!kernel.caps.inputs.has(DType::F32)) {
      problem_.input = DType::BF16;
    }
    const int64_t layer = options.n * options.k;
    layers_ = std::max<int64_t>(1, (options.mib << 20) / (layer * bytes_of(spec.dtype)));
    bytes_ = static_cast<size_t>(layers_ * layer * bytes_of(spec.dtype));
    codes_ = map_pages(bytes_ + 4096, options.small_pages);
    fill_weights(codes_, layers_ * layer, spec.dtype);
    scales_.assign(
        static_cast<size_t>(spec.tile.tile_rows(options.n) * spec.tile.tile_cols(options.k)),
        0.01F);
  }
  ~Subject() { munmap(codes_, bytes_); }
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  const LinearProblem& problem() const { return problem_; }
  const std::byte* memory() const { return codes_; }
  size_t layer_bytes() const { return bytes_ / static_cast<size_t>(layers_); }
  // The layer that comes next, so that the read may touch other bytes than the kernel.
  const std::byte* next_layer() { return codes_ + layer_bytes() * (turn_++ % layers_); }

  void prepare(int64_t m) {
    m_ = m;
    const DType dtype = problem_.activation ? problem_.activation->dtype : problem_.input;
    x_.assign(static_cast<size_t>(m * problem_.k * bytes_of(dtype)), std::byte{0});
    fill_inputs(x_.data(), m * problem_.k, dtype);
    if (problem_.activation) {
      x_scales_.assign(static_cast<size_t>(m * problem_.activation->tile.tile_cols(problem_.k)),
                       0.01F);
    }
    y_.assign(static_cast<size_t>(m * problem_.n), 0.0F);
    scratch_ = device_.allocate(kernel_.scratch_bytes == nullptr
                                    ? 0
                                    : kernel_.scratch_bytes(problem_, m, stream_.pool().threads()));
  }

  void run() {
    QuantView view;
    view.spec = problem_.weight;
    view.codes = {next_layer(), problem_.weight.dtype, Shape{problem_.n, problem_.k}, problem_.k};
    PackedWeight weight{.layout = kernel_.layout,
                        .problem = problem_,
                        .codes = view.codes.data,
                        .row_stride = problem_.k};
    if (is_f8(problem_.weight.dtype)) {
      weight.scales = scales_.data();
      weight.scale_cols = problem_.weight.tile.tile_cols(problem_.k);
    }
    const LinearArgs args{.weight = &weight,
                          .m = m_,
                          .x = {x_.data(), problem_.k, x_scales_.data()},
                          .y = y_.data(),
                          .y_stride = problem_.n,
                          .scratch = scratch_.data()};
    launch(kernel_, args, stream_);
  }

 private:
  const LinearKernel& kernel_;
  Device& device_;
  Stream& stream_;
  LinearProblem problem_;
  int64_t layers_ = 0, turn_ = 0, m_ = 0;
  size_t bytes_ = 0;
  std::byte* codes_ = nullptr;
  std::vector<float> scales_, x_scales_, y_;
  std::vector<std::byte> x_;
  Buffer scratch_;
};

// One line: the kernel at one number of tokens, in turn with reads and peak.
void measure(const LinearKernel& kernel, Subject& subject, const std::string& weights, int64_t m,
             const Options& options, ThreadPool& pool) {
  subject.prepare(m);
  const int threads = pool.threads();
  const size_t share = subject.layer_bytes() / static_cast<size_t>(threads) / 1024 * 1024;
  const Peak peak = peak_of(kernel.needs);
  volatile uint64_t sink = 0;
  constexpr int64_t kPeakRounds = 20000;
  const bool avx2 = probe_cpu().features.has(Feature::Avx2);
  Samples subject_time, reads[std::size(kReads)], spin;
  for (int round = 0; round < options.rounds; ++round) {
    sample(options, subject_time, [&] { subject.run(); });
    for (Read how : kReads) {
      const std::byte* layer = subject.next_layer();
      sample(options, reads[static_cast<int>(how)], [&] {
        pool.run([&](int t) {
          sink = sink ^ read_memory(layer + share * static_cast<size_t>(t), share, how, avx2);
        });
      });
    }
    sample(options, spin, [&] { pool.run([&](int) { spin_peak(peak, kPeakRounds); }); });
  }
  double best_read = reads[0].best(), median_read = reads[0].median();
  for (const Samples& read : reads) {
    best_read = std::min(best_read, read.best());
    median_read = std::min(median_read, read.median());
  }
  const auto bytes = static_cast<double>(share) * threads;
  const double layer = static_cast<double>(subject.layer_bytes());
  const double flop = 2.0 * static_cast<double>(m * options.n * options.k);
  const double peak_flop = spin_peak(peak, 1) * kPeakRounds * threads;
  const auto line = [&](const char* what, double mine, double read, double top) {
    fmt::print(
        "  {:6} {:9.3f} ms  {:7.2f} GB/s = {:.2f} of read {:6.2f}  {:7.1f} GFLOP/s = {:.2f} of {} "
        "{:.1f}\n",
        what, mine * 1e3, layer / mine * 1e-9, layer / mine / (bytes / read), bytes / read * 1e-9,
        flop / mine * 1e-9, flop / mine / (peak_flop / top), name(peak), peak_flop / top * 1e-9);
  };
  fmt::print("{} {} N={} K={} M={} threads={}\n", kernel.name, weights, options.n, options.k, m,
             threads);
  line("best", subject_time.best(), best_read, spin.best());
  line("median", subject_time.median(), median_read, spin.median());
  std::fflush(stdout);
}

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

Options parse(int argc, char** argv) {
  Options o;
  std::string pages = "2m", clock = "wall";
  read_flags(argc, argv,
             {{"--kernel", &o.kernel},
              {"--weights", &o.weights},
              {"--m", &o.tokens},
              {"--n", &o.n},
              {"--k", &o.k},
              {"--threads", &o.threads},
              {"--rounds", &o.rounds},
              {"--mib", &o.mib},
              {"--pages", &pages},
              {"--clock", &clock}});
  o.small_pages = pages == "4k";
  o.cpu_clock = clock == "cpu";
  if (o.cpu_clock && o.threads != 1) {
    throw_error(Code::BadInput, fmt::format("--clock cpu with --threads {}", o.threads),
                "CPU time counts waiting threads: add --threads 1");
  }
  return o;
}

int main_of(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const DeviceInfo info = probe_cpu();
  const std::unique_ptr<Device> device = make_cpu_device(info, options.threads);
  const std::unique_ptr<Stream> stream = device->make_stream();
  stream->pool().run([](int thread) { pin(thread); });
  for (const LinearKernel* kernel : kernels<LinearKernel>()) {
    if (kernel->name.find(options.kernel) == std::string_view::npos) continue;
    for (const std::string& weights : words(options.weights)) {
      Subject subject(*kernel, weights, options, *device, *stream);
      if (!refusals(*kernel, subject.problem(), info).empty()) continue;
      for (const std::string& m : words(options.tokens)) {
        measure(*kernel, subject, weights, std::stoll(m), options, stream->pool());
      }
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
    fmt::print(stderr, "linear_bench: {}\n  hint: {}\n", error.message(), error.hint());
    return octet::exit_status(error.code());
  }
}
