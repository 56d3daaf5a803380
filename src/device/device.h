#pragma once
// Where bytes live and work is queued: the only way for a forward pass to touch memory of a device.
#include <cstddef>
#include <memory>

#include "base/thread_pool.h"
#include "device/info.h"

namespace octet {

class Device;

// Device memory with one owner. The address is a device address: only kernels and Stream copies may
// follow it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device* device, void* data, size_t bytes) : device_(device), data_(data), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  Device* device_ = nullptr;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// An ordered queue of operations on one device. Thread: one user at a time.
class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default;

  // Threads for kernels that run on the host's cores; other backends down-cast to their own stream
  // instead.
  virtual ThreadPool& pool() = 0;
  // Copies between host and device, in order with the operations; download returns when the bytes
  // are there.
  virtual void upload(void* device_dst, const void* host_src, size_t bytes) = 0;
  virtual void download(void* host_dst, const void* device_src, size_t bytes) = 0;
  // Fills device memory with zero bytes.
  virtual void zero(void* device_dst, size_t bytes) = 0;
  // Called around every kernel by launch(); a device may open and close its memory here.
  virtual void begin_op() noexcept {}
  virtual void end_op() noexcept {}
  // Returns when everything queued so far is done.
  virtual void wait() = 0;
};

// Allocates memory and makes streams of one device. Outlives its buffers and streams.
class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;
  // At least `bytes` bytes, aligned to 64, contents undefined. Throws CannotRun when memory is out.
  virtual Buffer allocate(size_t bytes) = 0;
  virtual std::unique_ptr<Stream> make_stream() = 0;
  // True when kernels may read the host's memory in place (weights in an mmap).
  virtual bool reads_host_memory() const = 0;

 protected:
  friend class Buffer;
  virtual void release(void* data, size_t bytes) noexcept = 0;
};

// This machine's CPU with `threads` threads (0: as many as info.threads).
std::unique_ptr<Device> make_cpu_device(const DeviceInfo& info, int threads);

}  // namespace octet
