#include "device/device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "base/error.h"

namespace octet {
namespace {

DeviceInfo small_cpu() {
  return {DeviceKind::Cpu, "test", {}, uint64_t{1} << 30, 3};
}

TEST(CpuDevice, AllocatesAlignedMemoryThatCopiesReach) {
  const auto device = make_cpu_device(small_cpu(), 1);
  const auto stream = device->make_stream();
  const Buffer buffer = device->allocate(100);
  EXPECT_EQ(buffer.bytes(), 100U);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0U);
  const char sent[] = "over and back";
  char received[sizeof sent] = {};
  stream->upload(buffer.data(), sent, sizeof sent);
  stream->download(received, buffer.data(), sizeof sent);
  EXPECT_STREQ(received, sent);
  stream->zero(buffer.data(), 100);
  stream->download(received, buffer.data(), sizeof received);
  EXPECT_EQ(received[0], 0);
}

TEST(CpuDevice, TakesTheThreadsOfItsInfoUnlessTold) {
  EXPECT_EQ(make_cpu_device(small_cpu(), 0)->make_stream()->pool().threads(), 3);
  EXPECT_EQ(make_cpu_device(small_cpu(), 2)->make_stream()->pool().threads(), 2);
}

// Sanitizers end the process at such a size instead of giving null.
#if defined(__has_feature)
#define OCTET_HAS_FEATURE(x) __has_feature(x)
#else
#define OCTET_HAS_FEATURE(x) 0
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !OCTET_HAS_FEATURE(address_sanitizer) && !OCTET_HAS_FEATURE(thread_sanitizer)
TEST(CpuDevice, SaysWhenMemoryIsOut) {
  const auto device = make_cpu_device(small_cpu(), 1);
  try {
    const Buffer buffer = device->allocate(size_t{1} << 62);
    FAIL() << "allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::CannotRun);
    EXPECT_NE(error.message().find("4611686018427387904"), std::string::npos);
  }
}
#endif

// Counts what is given back.
class CountingDevice final : public Device {
 public:
  const DeviceInfo& info() const override { return info_; }
  Buffer allocate(size_t bytes) override { return {this, &memory_, bytes}; }
  std::unique_ptr<Stream> make_stream() override { return nullptr; }
  bool reads_host_memory() const override { return false; }
  int released() const { return released_; }

 protected:
  void release(void*, size_t) noexcept override { ++released_; }

 private:
  DeviceInfo info_;
  char memory_ = 0;
  int released_ = 0;
};

TEST(Buffer, IsReleasedOnceByItsLastOwner) {
  CountingDevice device;
  {
    Buffer a = device.allocate(1);
    Buffer b = std::move(a);
    EXPECT_EQ(a.data(), nullptr);  // NOLINT(bugprone-use-after-move): what a move leaves
    EXPECT_EQ(device.released(), 0);
    Buffer c = device.allocate(2);
    c = std::move(b);
    EXPECT_EQ(device.released(), 1);
    EXPECT_EQ(c.bytes(), 1U);
  }
  EXPECT_EQ(device.released(), 2);
}

}  // namespace
}  // namespace octet
