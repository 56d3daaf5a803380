#pragma once
// One open OpenCL device: its context, its memory and its compiled programs.
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "device/opencl.h"
#include "device/opencl_api.h"
#include "device/opencl_memory.h"

namespace octet {

// A device of the system by its handles.
struct OpenClHandle {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
};

// Every device in the order of list_opencl_devices(). Throws CannotRun without an OpenCL loader.
std::vector<OpenClHandle> opencl_handles();

// A text of clGetDeviceInfo or clGetPlatformInfo; empty when the driver has none.
std::string device_text(cl_device_id device, cl_device_info what);
std::string platform_text(cl_platform_id platform, cl_platform_info what);

// A value of clGetDeviceInfo; zero when the driver has none.
template <class T>
T device_value(cl_device_id device, cl_device_info what) {
  T value{};
  if (opencl_api().get_device_info(device, what, sizeof value, &value, nullptr) != CL_SUCCESS)
    return {};
  return value;
}

// Shared by the buffers and streams of a device. Threads: any.
class OpenClContext {
 public:
  OpenClContext(OpenClHandle handle, std::filesystem::path cache, const OpenClClaims& claims);
  ~OpenClContext();
  OpenClContext(const OpenClContext&) = delete;
  OpenClContext& operator=(const OpenClContext&) = delete;

  cl_device_id device() const { return handle_.device; }
  cl_context context() const { return context_; }
  const OpenClMemory& memory() const { return *memory_; }
  // OpenClStream::narrow() of its streams.
  bool narrow() const { return narrow_; }
  // An in-order queue; the caller releases it.
  cl_command_queue make_queue() const;

  // Text kept on disk for this device and driver under a name; nothing when there is none.
  std::optional<std::string> kept(std::string_view name) const;
  void keep(std::string_view name, std::string_view text) const;

  // The program, compiled for this device: from this process, the cache on disk, or its source.
  // Throws Environment with the compiler's words when it does not compile.
  cl_program program(const ClProgram& source);

 private:
  std::string key(std::string_view name) const;
  cl_program build(const ClProgram& source) const;
  cl_program from_source(const ClProgram& source, std::string_view text,
                         const std::string& options) const;

  OpenClHandle handle_;
  std::filesystem::path cache_;
  OpenClClaims claims_;
  bool narrow_ = false;
  cl_context context_ = nullptr;
  std::unique_ptr<OpenClMemory> memory_;
  std::mutex mutex_;
  std::map<std::string, cl_program, std::less<>> programs_;  // by ClProgram::name
};

}  // namespace octet
