#include "testing/fake_device.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>

#include "base/error.h"

namespace octet {
namespace {

constexpr size_t kPage = 4096;

// One mapping, closed but between open() and close().
class Arena {
 public:
  explicit Arena(size_t bytes) : bytes_(bytes) {
    data_ = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    OCTET_CHECK(data_ != MAP_FAILED, "cannot map {} bytes", bytes);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { munmap(data_, bytes_); }

  void* take(size_t bytes) {
    const size_t size = (bytes + kPage) / kPage * kPage;
    if (size > bytes_ - used_) {
      throw_error(Code::CannotRun,
                  fmt::format("no memory for {} bytes on the fake device of {}", bytes, bytes_));
    }
    void* taken = static_cast<std::byte*>(data_) + used_;
    used_ += size;
    return taken;
  }
  void open() noexcept { protect(PROT_READ | PROT_WRITE); }
  void close() noexcept { protect(PROT_NONE); }

 private:
  void protect(int rights) noexcept {
    if (used_ != 0) mprotect(data_, used_, rights);
  }

  void* data_;
  size_t bytes_;
  size_t used_ = 0;
};

class FakeStream final : public Stream {
 public:
  FakeStream(Arena& arena, ThreadPool& pool) : arena_(arena), pool_(pool) {}

  ThreadPool& pool() override { return pool_; }
  void upload(void* device_dst, const void* host_src, size_t bytes) override {
    copy(device_dst, host_src, bytes);
  }
  void download(void* host_dst, const void* device_src, size_t bytes) override {
    copy(host_dst, device_src, bytes);
  }
  void zero(void* device_dst, size_t bytes) override {
    arena_.open();
    if (bytes != 0) std::memset(device_dst, 0, bytes);
    arena_.close();
  }
  void begin_op() noexcept override { arena_.open(); }
  void end_op() noexcept override { arena_.close(); }
  void wait() override {}

 private:
  void copy(void* dst, const void* src, size_t bytes) {
    arena_.open();
    if (bytes != 0) std::memcpy(dst, src, bytes);
    arena_.close();
  }

  Arena& arena_;
  ThreadPool& pool_;
};

class FakeDevice final : public Device {
 public:
  FakeDevice(const DeviceInfo& info, int threads, size_t bytes)
      : info_(info), arena_(bytes), pool_(threads) {}

  const DeviceInfo& info() const override { return info_; }
  Buffer allocate(size_t bytes) override { return {this, arena_.take(bytes), bytes}; }
  std::unique_ptr<Stream> make_stream() override {
    return std::make_unique<FakeStream>(arena_, pool_);
  }
  bool reads_host_memory() const override { return false; }

 protected:
  void release(void*, size_t) noexcept override {}

 private:
  DeviceInfo info_;
  Arena arena_;
  ThreadPool pool_;
};

}  // namespace

std::unique_ptr<Device> make_fake_device(const DeviceInfo& info, int threads, size_t bytes) {
  OCTET_CHECK(info.kind == DeviceKind::Cpu, "a fake {}", name(info.kind));
  return std::make_unique<FakeDevice>(info, threads, bytes);
}

}  // namespace octet
