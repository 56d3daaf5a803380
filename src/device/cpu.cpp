// The CPU device: memory of the process, kernels on a thread pool, streams that run at once.
#include <algorithm>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "base/error.h"
#include "device/device.h"

namespace octet {
namespace {

constexpr std::align_val_t kAlignment{64};

class CpuStream final : public Stream {
 public:
  explicit CpuStream(ThreadPool& pool) : pool_(pool) {}

  ThreadPool& pool() override { return pool_; }
  void upload(void* device_dst, const void* host_src, size_t bytes) override {
    if (bytes != 0) std::memcpy(device_dst, host_src, bytes);
  }
  void download(void* host_dst, const void* device_src, size_t bytes) override {
    if (bytes != 0) std::memcpy(host_dst, device_src, bytes);
  }
  void zero(void* device_dst, size_t bytes) override {
    if (bytes != 0) std::memset(device_dst, 0, bytes);
  }
  void wait() override {}

 private:
  ThreadPool& pool_;
};

class CpuDevice final : public Device {
 public:
  CpuDevice(const DeviceInfo& info, int threads)
      : info_(info), pool_(threads > 0 ? threads : std::max(1, info.threads)) {}

  const DeviceInfo& info() const override { return info_; }
  Buffer allocate(size_t bytes) override {
    void* data = ::operator new(std::max<size_t>(bytes, 1), kAlignment, std::nothrow);
    if (data == nullptr) {
      throw_error(Code::CannotRun, fmt::format("no memory for {} bytes on {}", bytes, info_.name),
                  "try a smaller --max-model-len");
    }
    return {this, data, bytes};
  }
  std::unique_ptr<Stream> make_stream() override { return std::make_unique<CpuStream>(pool_); }
  bool reads_host_memory() const override { return true; }

 protected:
  void release(void* data, size_t) noexcept override { ::operator delete(data, kAlignment); }

 private:
  DeviceInfo info_;
  ThreadPool pool_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(const DeviceInfo& info, int threads) {
  return std::make_unique<CpuDevice>(info, threads);
}

}  // namespace octet
