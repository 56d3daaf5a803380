// The OpenCL device: memory with plain addresses, in-order queues, kernels by program and name.
#include "device/opencl.h"

#include <fmt/format.h>

#include <atomic>
#include <deque>
#include <optional>
#include <utility>

#include "base/error.h"
#include "device/opencl_probe.h"

namespace octet {
namespace {

// The caller may change the host memory of a copy at once. Small copies are kept until the next
// wait, so that a step of the model is not held up; for larger ones, and when many are kept, the
// host waits.
constexpr size_t kLargestStaged = size_t{256} << 10;
constexpr size_t kMostStaged = size_t{16} << 20;

class ClStream final : public OpenClStream {
 public:
  ClStream(OpenClContext& context, std::atomic<int64_t>& waits)
      : context_(context), queue_(context.make_queue()), waits_(waits) {}
  ~ClStream() override {
    opencl_api().finish(queue_);
    for (const Entry& entry : kernels_) opencl_api().release_kernel(entry.kernel);
    opencl_api().release_queue(queue_);
  }
  ClStream(const ClStream&) = delete;
  ClStream& operator=(const ClStream&) = delete;

  ThreadPool& pool() override { return pool_; }

  void upload(void* device_dst, const void* host_src, size_t bytes) override {
    throw_failure();
    if (bytes == 0) return;
    const bool stage = bytes <= kLargestStaged && staged_bytes_ + bytes <= kMostStaged;
    const void* source = host_src;
    if (stage) {
      const auto* begin = static_cast<const std::byte*>(host_src);
      staged_.emplace_back(begin, begin + bytes);
      staged_bytes_ += bytes;
      source = staged_.back().data();
    }
    check(context_.memory().copy(queue_, !stage, device_dst, source, bytes), "upload");
    if (!stage) waited();
  }

  void download(void* host_dst, const void* device_src, size_t bytes) override {
    throw_failure();
    if (bytes == 0) return;
    check(context_.memory().copy(queue_, true, host_dst, device_src, bytes), "download");
    waited();
  }

  void zero(void* device_dst, size_t bytes) override {
    throw_failure();
    if (bytes != 0) check(context_.memory().zero(queue_, device_dst, bytes), "fill");
  }

  void wait() override {
    throw_failure();
    check(opencl_api().finish(queue_), "wait");
    waited();
  }

  bool narrow() const override { return context_.narrow(); }

  void enqueue(const ClProgram& program, const char* kernel, const ClGrid& grid,
               std::span<const ClArg> args) noexcept override {
    if (failure_) return;
    try {
      start(find(program, kernel), grid, args);
    } catch (const Error& error) {
      failure_ = error;
    } catch (const std::exception& error) {
      failure_ =
          Error(Code::Environment, fmt::format("OpenCL kernel {}: {}", kernel, error.what()));
    }
  }

 private:
  struct Entry {
    std::string_view program, name;
    cl_kernel kernel;
  };

  void waited() {
    ++waits_;
    staged_.clear();
    staged_bytes_ = 0;
  }

  void check(cl_int status, std::string_view what) {
    if (status != CL_SUCCESS) opencl_check(status, fmt::format("OpenCL {}", what));
  }

  void throw_failure() const {
    if (failure_) throw Error(*failure_);
  }

  cl_kernel find(const ClProgram& program, const char* kernel) {
    for (const Entry& entry : kernels_) {
      if (entry.program == program.name && entry.name == kernel) return entry.kernel;
    }
    cl_int status = CL_SUCCESS;
    cl_kernel made = opencl_api().create_kernel(context_.program(program), kernel, &status);
    opencl_check(status,
                 fmt::format("OpenCL program \"{}\" has no kernel {}", program.name, kernel));
    kernels_.push_back({program.name, kernel, made});
    return made;
  }

  void start(cl_kernel kernel, const ClGrid& grid, std::span<const ClArg> args) {
    for (size_t i = 0; i < args.size(); ++i) {
      const ClArg& arg = args[i];
      const auto index = static_cast<cl_uint>(i);
      opencl_check(arg.is_address()
                       ? context_.memory().set_arg(kernel, index, arg.address())
                       : opencl_api().set_kernel_arg(kernel, index, arg.size(), arg.value()),
                   fmt::format("OpenCL kernel argument {}", i));
    }
    std::array<size_t, 3> global{};
    for (size_t i = 0; i < 3; ++i) {
      if (grid.global[i] == 0) return;
      global[i] = (grid.global[i] + grid.local[i] - 1) / grid.local[i] * grid.local[i];
    }
    opencl_check(opencl_api().enqueue_kernel(queue_, kernel, 3, nullptr, global.data(),
                                             grid.local.data(), 0, nullptr, nullptr),
                 "OpenCL launch");
  }

  OpenClContext& context_;
  cl_command_queue queue_;
  ThreadPool pool_{1};
  std::vector<Entry> kernels_;
  std::deque<std::vector<std::byte>> staged_;  // sources of copies that are still queued
  size_t staged_bytes_ = 0;
  std::atomic<int64_t>& waits_;  // of the device
  std::optional<Error> failure_;
};

class ClDevice final : public OpenClDevice {
 public:
  explicit ClDevice(OpenClContext& context) : context_(context) {}

  const DeviceInfo& info() const override { return info_; }
  void describe(DeviceInfo info) { info_ = std::move(info); }

  Buffer allocate(size_t bytes) override {
    const uint64_t limit = info_.max_allocation_bytes;
    if (limit != 0 && bytes > limit) {
      throw_error(Code::CannotRun,
                  fmt::format("\"{}\" allocates at most {} bytes at once, {} are needed",
                              info_.name, limit, bytes),
                  "try a smaller --max-model-len or --max-num-batched-tokens");
    }
    void* data = context_.memory().allocate(std::max<size_t>(bytes, 64));
    if (data == nullptr) {
      throw_error(Code::CannotRun,
                  fmt::format("no memory for {} bytes on \"{}\"", bytes, info_.name),
                  "try a smaller --max-model-len or --max-num-batched-tokens");
    }
    return {this, data, bytes};
  }
  std::unique_ptr<Stream> make_stream() override {
    return std::make_unique<ClStream>(context_, waits_);
  }
  bool reads_host_memory() const override { return false; }
  int64_t waits() const override { return waits_; }

 protected:
  void release(void* data, size_t) noexcept override { context_.memory().release(data); }

 private:
  OpenClContext& context_;
  DeviceInfo info_;
  std::atomic<int64_t> waits_ = 0;
};

// An open device and what it can do.
struct Opened {
  std::unique_ptr<OpenClContext> context;
  DeviceInfo info;
};

std::string devices_seen() {
  std::string seen;
  for (const OpenClEntry& entry : list_opencl_devices()) {
    seen += fmt::format("{}opencl:{} \"{}\" ({}{}{})", seen.empty() ? "" : ", ", entry.index,
                        entry.name, entry.platform, entry.problem.empty() ? "" : "; it ",
                        entry.problem);
  }
  return seen.empty()
             ? "no OpenCL device was found: is a driver installed, and can it write its cache "
               "($XDG_CACHE_HOME, else ~/.cache)?"
             : "devices seen: " + seen;
}

Opened open_device(int index, const std::filesystem::path& cache, const OpenClClaims& claims) {
  const std::vector<OpenClHandle> handles = opencl_handles();
  const std::vector<OpenClEntry> entries = list_opencl_devices();
  const auto at = static_cast<size_t>(index);
  if (index < 0 || at >= handles.size()) {
    throw_error(Code::CannotRun, fmt::format("there is no OpenCL device {}", index),
                devices_seen());
  }
  if (!entries[at].problem.empty()) {
    throw_error(Code::CannotRun,
                fmt::format("the OpenCL device \"{}\" {}", entries[at].name, entries[at].problem),
                devices_seen());
  }
  Opened opened{std::make_unique<OpenClContext>(handles[at], cache, claims), {}};
  ClDevice device(*opened.context);
  opened.info = describe_opencl(device, *opened.context);
  opened.info.features = opened.info.features.minus(claims.drops);
  claims.adds.each([&](Feature f) { opened.info.features.insert(f); });
  return opened;
}

// Contexts stay open until the process ends: drivers compile, keep and free much with one, and do
// not stand being torn down among static destructors.
const Opened& opened_device(int index, const std::filesystem::path& cache,
                            const OpenClClaims& claims) {
  static std::mutex mutex;
  static auto& opened = *new std::map<std::string, Opened>;
  const std::lock_guard lock(mutex);
  const std::string key =
      fmt::format("{}\n{}\n{} {} {}\n{}\n{}", index, cache.string(), to_string(claims.adds),
                  to_string(claims.drops), claims.narrow ? int{*claims.narrow} : -1, claims.option,
                  claims.prelude);
  auto found = opened.find(key);
  if (found == opened.end()) found = opened.emplace(key, open_device(index, cache, claims)).first;
  return found->second;
}

}  // namespace

std::unique_ptr<OpenClDevice> make_opencl_device(int index, const std::filesystem::path& cache,
                                                 const OpenClClaims& claims) {
  const Opened& opened = opened_device(index, cache, claims);
  auto device = std::make_unique<ClDevice>(*opened.context);
  device->describe(opened.info);
  return device;
}

}  // namespace octet
