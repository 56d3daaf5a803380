#pragma once
// Memory of an OpenCL device with plain addresses, in the two ways that drivers offer.
#include <memory>

#include "device/opencl_api.h"

namespace octet {

// Allocation and copies by address.
class OpenClMemory {
 public:
  OpenClMemory() = default;
  OpenClMemory(const OpenClMemory&) = delete;
  OpenClMemory& operator=(const OpenClMemory&) = delete;
  virtual ~OpenClMemory() = default;

  // Null when there is none.
  virtual void* allocate(size_t bytes) const = 0;
  virtual void release(void* data) const = 0;
  virtual cl_int set_arg(cl_kernel kernel, cl_uint index, const void* address) const = 0;
  virtual cl_int copy(cl_command_queue queue, bool wait, void* to, const void* from,
                      size_t bytes) const = 0;
  virtual cl_int zero(cl_command_queue queue, void* data, size_t bytes) const = 0;
};

// Unified shared memory of the device (cl_intel_unified_shared_memory), else coarse-grained shared
// virtual memory (OpenCL 2.0). Null when the device has neither.
std::unique_ptr<OpenClMemory> make_opencl_memory(cl_platform_id platform, cl_device_id device,
                                                 cl_context context);

// Which of them it would be: "USM", "SVM" or empty.
std::string_view opencl_memory_kind(cl_device_id device);

}  // namespace octet
