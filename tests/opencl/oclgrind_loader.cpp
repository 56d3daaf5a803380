// libOpenCL.so.1 for tests: the simulator Oclgrind, which looks for data races and for accesses
// outside of memory, with the shared virtual memory that it lacks. An allocation is a buffer of the
// simulator and a range of addresses that the host cannot touch; a kernel's argument inside of it
// is a part of the buffer. All functions that are not here are found in Oclgrind's own library.
//
// The environment can break the device: OCTET_LOADER_LAUNCHES=N loses it after N kernels,
// OCTET_LOADER_BYTES=N leaves it no memory after N bytes.
#include <CL/cl.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace {

struct Allocation {
  size_t bytes = 0;
  cl_mem buffer = nullptr;
  std::map<size_t, cl_mem> parts;  // from an offset to the end
};

std::mutex mutex;

// By the first address. Kept until the end: buffers are freed by the simulator's own thread.
std::map<uintptr_t, Allocation>& allocations() {
  static auto& all = *new std::map<uintptr_t, Allocation>;
  return all;
}

// The allocation that holds an address, and the offset in it; null: memory of the host.
std::pair<Allocation*, size_t> find(const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  auto next = allocations().upper_bound(at);
  if (next == allocations().begin()) return {nullptr, 0};
  auto& [begin, allocation] = *--next;
  return at < begin + allocation.bytes ? std::pair{&allocation, at - begin} : std::pair{nullptr, 0};
}

// A function of the simulator that one here replaces.
template <class Function>
Function original(const char* name) {
  void* library = dlopen(OCTET_OCLGRIND_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<Function>(dlsym(library, name));
}

// A number of the environment; the largest one without it.
uint64_t limit(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? UINT64_MAX : std::strtoull(value, nullptr, 10);
}

uint64_t launches = 0;
bool lost() {
  return launches > limit("OCTET_LOADER_LAUNCHES");
}

}  // namespace

extern "C" {

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t* offset, const size_t* global, const size_t* local,
                              cl_uint events, const cl_event* list, cl_event* event) {
  ++launches;
  if (lost()) return CL_DEVICE_NOT_AVAILABLE;
  static const auto run = original<decltype(&clEnqueueNDRangeKernel)>("clEnqueueNDRangeKernel");
  return run(queue, kernel, dimensions, offset, global, local, events, list, event);
}

cl_int clFinish(cl_command_queue queue) {
  if (lost()) return CL_DEVICE_NOT_AVAILABLE;
  static const auto finish = original<decltype(&clFinish)>("clFinish");
  return finish(queue);
}

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t size, void* value,
                       size_t* size_needed) {
  if (what != CL_DEVICE_SVM_CAPABILITIES) {
    static const auto ask = original<decltype(&clGetDeviceInfo)>("clGetDeviceInfo");
    return ask(device, what, size, value, size_needed);
  }
  const cl_device_svm_capabilities coarse = CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
  if (size_needed != nullptr) *size_needed = sizeof coarse;
  if (value == nullptr) return CL_SUCCESS;
  if (size < sizeof coarse) return CL_INVALID_VALUE;
  std::memcpy(value, &coarse, sizeof coarse);
  return CL_SUCCESS;
}

void* clSVMAlloc(cl_context context, cl_svm_mem_flags, size_t bytes, cl_uint) {
  const std::lock_guard lock(mutex);
  static uint64_t allocated = 0;
  allocated += bytes;
  if (allocated > limit("OCTET_LOADER_BYTES")) return nullptr;
  cl_int status = CL_SUCCESS;
  cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, &status);
  if (status != CL_SUCCESS) return nullptr;
  void* place = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return nullptr;
  allocations()[reinterpret_cast<uintptr_t>(place)] = {bytes, buffer, {}};
  return place;
}

void clSVMFree(cl_context, void* place) {
  const std::lock_guard lock(mutex);
  const auto [allocation, offset] = find(place);
  if (allocation == nullptr || offset != 0) return;
  for (const auto& [begin, part] : allocation->parts) clReleaseMemObject(part);
  clReleaseMemObject(allocation->buffer);
  munmap(place, allocation->bytes);
  allocations().erase(reinterpret_cast<uintptr_t>(place));
}

cl_int clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint index, const void* address) {
  const std::lock_guard lock(mutex);
  cl_mem part = nullptr;
  if (address != nullptr) {
    const auto [allocation, offset] = find(address);
    if (allocation == nullptr) return CL_INVALID_ARG_VALUE;
    part = offset == 0 ? allocation->buffer : allocation->parts[offset];
    if (part == nullptr) {
      const cl_buffer_region region{offset, allocation->bytes - offset};
      cl_int status = CL_SUCCESS;
      part = clCreateSubBuffer(allocation->buffer, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                               &region, &status);
      if (status != CL_SUCCESS) return status;
      allocation->parts[offset] = part;
    }
  }
  constexpr size_t kHandle = sizeof(cl_mem);
  return clSetKernelArg(kernel, index, kHandle, &part);
}

cl_int clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool wait, void* to, const void* from,
                          size_t bytes, cl_uint events, const cl_event* list, cl_event* event) {
  if (lost()) return CL_DEVICE_NOT_AVAILABLE;
  const std::lock_guard lock(mutex);
  const auto [target, target_offset] = find(to);
  const auto [source, source_offset] = find(from);
  if (target != nullptr && source != nullptr) {
    return clEnqueueCopyBuffer(queue, source->buffer, target->buffer, source_offset, target_offset,
                               bytes, events, list, event);
  }
  if (target != nullptr) {
    return clEnqueueWriteBuffer(queue, target->buffer, wait, target_offset, bytes, from, events,
                                list, event);
  }
  if (source == nullptr) return CL_INVALID_VALUE;
  return clEnqueueReadBuffer(queue, source->buffer, wait, source_offset, bytes, to, events, list,
                             event);
}

cl_int clEnqueueSVMMemFill(cl_command_queue queue, void* place, const void* pattern,
                           size_t pattern_bytes, size_t bytes, cl_uint events, const cl_event* list,
                           cl_event* event) {
  const std::lock_guard lock(mutex);
  const auto [allocation, offset] = find(place);
  if (allocation == nullptr) return CL_INVALID_VALUE;
  return clEnqueueFillBuffer(queue, allocation->buffer, pattern, pattern_bytes, offset, bytes,
                             events, list, event);
}

}  // extern "C"
