#pragma once
// OpenCL devices: what there is, how one is opened, and how kernels are queued on its streams.
//
// Memory has plain device addresses (unified shared memory where the driver has it, else shared
// virtual memory), so that an operation may be given a place inside a buffer as on any device.
#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "device/device.h"

namespace octet {

// An OpenCL program as kernels name it. Compared by `name`, so two programs must not share one.
struct ClProgram {
  std::string_view name;     // for messages and the cache, e.g. "linear_subgroup"
  std::string_view source;   // OpenCL C
  std::string_view options;  // of the compiler, beside those of every program
};

// How many work-items run, in groups of `local`; `global` is rounded up to whole groups.
struct ClGrid {
  std::array<size_t, 3> global = {1, 1, 1};
  std::array<size_t, 3> local = {1, 1, 1};
};

// One argument of a kernel: a device address, or a number as the kernel declares it.
class ClArg {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): made to list arguments as they are
  ClArg(const void* address) : is_address_(true), size_(sizeof address) {
    std::memcpy(value_.data(), &address, sizeof address);
  }
  template <class T>
  // NOLINTNEXTLINE(google-explicit-constructor)
  requires std::is_arithmetic_v<T> ClArg(T number) : size_(sizeof number) {
    std::memcpy(value_.data(), &number, sizeof number);
  }

  bool is_address() const { return is_address_; }
  size_t size() const { return size_; }
  const void* value() const { return value_.data(); }
  const void* address() const {
    const void* address = nullptr;
    std::memcpy(&address, value_.data(), sizeof address);
    return address;
  }

 private:
  std::array<std::byte, 8> value_{};
  bool is_address_ = false;
  size_t size_;
};

// A queue of an OpenCL device. What fails in it is kept and thrown by the next download() or
// wait(), since operations cannot throw; the operations after a failure do nothing.
class OpenClStream : public Stream {
 public:
  // Queues one kernel of `program`, which is compiled or read from the cache at its first use.
  virtual void enqueue(const ClProgram& program, const char* kernel, const ClGrid& grid,
                       std::span<const ClArg> args) noexcept = 0;
  void enqueue(const ClProgram& program, const char* kernel, const ClGrid& grid,
               std::initializer_list<ClArg> args) noexcept {
    enqueue(program, kernel, grid, std::span(args.begin(), args.size()));
  }
  // True where a work-item is one lane of the hardware, as on GPUs; false where it may hold vectors
  // of its own, as on CPUs.
  virtual bool narrow() const = 0;
};

// What tests claim of a device: kernels for hardware that is not here run with stand-ins for what
// the device lacks. The product makes no claims.
struct OpenClClaims {
  Features adds;                              // features it does not have
  Features drops;                             // features it does have
  std::string option;                         // programs whose options hold this word ...
  std::string prelude;                        // ... begin with this text ...
  std::string without;                        // ... and are compiled without this option
  std::optional<bool> narrow = std::nullopt;  // of its streams
};

// An open OpenCL device.
class OpenClDevice : public Device {
 public:
  // How often the host has waited for a stream of the device.
  virtual int64_t waits() const = 0;
};

// A device as the system lists it.
struct OpenClEntry {
  int index = 0;  // N of --device opencl:N
  bool gpu = false;
  std::string platform;
  std::string name;
  std::string problem;  // why Octet cannot use it; empty: it can
};

// Every OpenCL device of this system in the order of its platforms; none without an OpenCL loader.
std::vector<OpenClEntry> list_opencl_devices();

// Why the OpenCL loader cannot be used; empty: it can.
std::string opencl_loader_problem();

// What device N can do: found out by compiling and running small programs, since drivers do not
// list all that they have. `cache` is a folder for compiled programs; empty: nothing is kept.
// Throws CannotRun naming the devices seen when there is no such device, or it cannot be used.
DeviceInfo probe_opencl(int index, const std::filesystem::path& cache);

// Opens device N. Throws as probe_opencl() does.
std::unique_ptr<OpenClDevice> make_opencl_device(int index, const std::filesystem::path& cache,
                                                 const OpenClClaims& claims = {});

}  // namespace octet
