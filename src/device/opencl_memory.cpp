#include "device/opencl_memory.h"

#include <string>

#include "device/opencl_context.h"

namespace octet {
namespace {

constexpr cl_uint kAlignment = 64;

class SharedVirtualMemory final : public OpenClMemory {
 public:
  explicit SharedVirtualMemory(cl_context context) : context_(context) {}

  void* allocate(size_t bytes) const override {
    return opencl_api().svm_alloc(context_, CL_MEM_READ_WRITE, bytes, kAlignment);
  }
  void release(void* data) const override { opencl_api().svm_free(context_, data); }
  cl_int set_arg(cl_kernel kernel, cl_uint index, const void* address) const override {
    return opencl_api().set_kernel_arg_svm(kernel, index, address);
  }
  cl_int copy(cl_command_queue queue, bool wait, void* to, const void* from,
              size_t bytes) const override {
    return opencl_api().enqueue_svm_copy(queue, wait ? CL_TRUE : CL_FALSE, to, from, bytes, 0,
                                         nullptr, nullptr);
  }
  cl_int zero(cl_command_queue queue, void* data, size_t bytes) const override {
    const cl_uchar zero = 0;
    return opencl_api().enqueue_svm_fill(queue, data, &zero, sizeof zero, bytes, 0, nullptr,
                                         nullptr);
  }

 private:
  cl_context context_;
};

class UnifiedSharedMemory final : public OpenClMemory {
 public:
  UnifiedSharedMemory(cl_platform_id platform, cl_device_id device, cl_context context)
      : device_(device), context_(context) {
    find(platform, "clDeviceMemAllocINTEL", allocate_);
    find(platform, "clMemFreeINTEL", free_);
    find(platform, "clSetKernelArgMemPointerINTEL", set_arg_);
    find(platform, "clEnqueueMemcpyINTEL", copy_);
    find(platform, "clEnqueueMemFillINTEL", fill_);
  }

  bool complete() const {
    return allocate_ != nullptr && free_ != nullptr && set_arg_ != nullptr && copy_ != nullptr &&
           fill_ != nullptr;
  }

  void* allocate(size_t bytes) const override {
    cl_int status = CL_SUCCESS;
    return allocate_(context_, device_, nullptr, bytes, kAlignment, &status);
  }
  void release(void* data) const override { free_(context_, data); }
  cl_int set_arg(cl_kernel kernel, cl_uint index, const void* address) const override {
    return set_arg_(kernel, index, address);
  }
  cl_int copy(cl_command_queue queue, bool wait, void* to, const void* from,
              size_t bytes) const override {
    return copy_(queue, wait ? CL_TRUE : CL_FALSE, to, from, bytes, 0, nullptr, nullptr);
  }
  cl_int zero(cl_command_queue queue, void* data, size_t bytes) const override {
    const cl_uchar zero = 0;
    return fill_(queue, data, &zero, sizeof zero, bytes, 0, nullptr, nullptr);
  }

 private:
  template <class Function>
  static void find(cl_platform_id platform, const char* name, Function& function) {
    function = reinterpret_cast<Function>(opencl_api().extension_function(platform, name));
  }

  cl_device_id device_;
  cl_context context_;
  clDeviceMemAllocINTEL_fn allocate_ = nullptr;
  clMemFreeINTEL_fn free_ = nullptr;
  clSetKernelArgMemPointerINTEL_fn set_arg_ = nullptr;
  clEnqueueMemcpyINTEL_fn copy_ = nullptr;
  clEnqueueMemFillINTEL_fn fill_ = nullptr;
};

}  // namespace

std::string_view opencl_memory_kind(cl_device_id device) {
  const std::string extensions = device_text(device, CL_DEVICE_EXTENSIONS);
  if (extensions.find("cl_intel_unified_shared_memory") != std::string::npos) return "USM";
  const auto svm = device_value<cl_device_svm_capabilities>(device, CL_DEVICE_SVM_CAPABILITIES);
  return (svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0 ? "SVM" : "";
}

std::unique_ptr<OpenClMemory> make_opencl_memory(cl_platform_id platform, cl_device_id device,
                                                 cl_context context) {
  const std::string_view kind = opencl_memory_kind(device);
  if (kind == "USM") {
    auto memory = std::make_unique<UnifiedSharedMemory>(platform, device, context);
    if (memory->complete()) return memory;
  }
  const auto svm = device_value<cl_device_svm_capabilities>(device, CL_DEVICE_SVM_CAPABILITIES);
  if ((svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0)
    return std::make_unique<SharedVirtualMemory>(context);
  return nullptr;
}

}  // namespace octet
