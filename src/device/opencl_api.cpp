#include "device/opencl_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/error.h"

namespace octet {
namespace {

constexpr const char* kLibrary = "libOpenCL.so.1";

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return;
  throw_error(Code::CannotRun,
              fmt::format("{} has no {}: it is older than OpenCL 2.0", kLibrary, name),
              "install a current OpenCL loader (Debian: ocl-icd-libopencl1)");
}

OpenClApi open_library() {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    throw_error(Code::CannotRun,
                fmt::format("the OpenCL loader cannot be opened: {}",
                            reason == nullptr ? kLibrary : reason),
                "install it (Debian: ocl-icd-libopencl1) and a driver: intel-opencl-icd for Intel "
                "GPUs, pocl-opencl-icd for CPUs");
  }
  OpenClApi api{};
  find(library, "clGetPlatformIDs", api.get_platform_ids);
  find(library, "clGetPlatformInfo", api.get_platform_info);
  find(library, "clGetDeviceIDs", api.get_device_ids);
  find(library, "clGetDeviceInfo", api.get_device_info);
  find(library, "clCreateContext", api.create_context);
  find(library, "clReleaseContext", api.release_context);
  find(library, "clCreateCommandQueueWithProperties", api.create_queue);
  find(library, "clReleaseCommandQueue", api.release_queue);
  find(library, "clCreateProgramWithSource", api.create_program_with_source);
  find(library, "clCreateProgramWithBinary", api.create_program_with_binary);
  find(library, "clBuildProgram", api.build_program);
  find(library, "clGetProgramInfo", api.get_program_info);
  find(library, "clGetProgramBuildInfo", api.get_program_build_info);
  find(library, "clReleaseProgram", api.release_program);
  find(library, "clCreateKernel", api.create_kernel);
  find(library, "clReleaseKernel", api.release_kernel);
  find(library, "clSetKernelArg", api.set_kernel_arg);
  find(library, "clSetKernelArgSVMPointer", api.set_kernel_arg_svm);
  find(library, "clEnqueueNDRangeKernel", api.enqueue_kernel);
  find(library, "clSVMAlloc", api.svm_alloc);
  find(library, "clSVMFree", api.svm_free);
  find(library, "clEnqueueSVMMemcpy", api.enqueue_svm_copy);
  find(library, "clEnqueueSVMMemFill", api.enqueue_svm_fill);
  find(library, "clFlush", api.flush);
  find(library, "clFinish", api.finish);
  find(library, "clGetExtensionFunctionAddressForPlatform", api.extension_function);
  return api;
}

struct ErrorName {
  cl_int status;
  std::string_view name;
};

// Those that a run can meet: OpenCL 3.0 API specification, appendix F.
constexpr std::array kNames = {
    ErrorName{CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE"},
    ErrorName{CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    ErrorName{CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
    ErrorName{CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
    ErrorName{CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE"},
    ErrorName{CL_COMPILER_NOT_AVAILABLE, "CL_COMPILER_NOT_AVAILABLE"},
    ErrorName{CL_INVALID_VALUE, "CL_INVALID_VALUE"},
    ErrorName{CL_INVALID_BINARY, "CL_INVALID_BINARY"},
    ErrorName{CL_INVALID_BUILD_OPTIONS, "CL_INVALID_BUILD_OPTIONS"},
    ErrorName{CL_INVALID_PROGRAM_EXECUTABLE, "CL_INVALID_PROGRAM_EXECUTABLE"},
    ErrorName{CL_INVALID_KERNEL_NAME, "CL_INVALID_KERNEL_NAME"},
    ErrorName{CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS"},
    ErrorName{CL_INVALID_ARG_INDEX, "CL_INVALID_ARG_INDEX"},
    ErrorName{CL_INVALID_ARG_VALUE, "CL_INVALID_ARG_VALUE"},
    ErrorName{CL_INVALID_ARG_SIZE, "CL_INVALID_ARG_SIZE"},
    ErrorName{CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE"},
    ErrorName{CL_INVALID_OPERATION, "CL_INVALID_OPERATION"},
    ErrorName{CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE"},
    ErrorName{CL_INVALID_GLOBAL_WORK_SIZE, "CL_INVALID_GLOBAL_WORK_SIZE"},
};

}  // namespace

const OpenClApi& opencl_api() {
  static const OpenClApi api = open_library();
  return api;
}

std::string opencl_error(cl_int status) {
  for (const ErrorName& known : kNames) {
    if (known.status == status) return fmt::format("{} ({})", known.name, status);
  }
  return fmt::format("OpenCL error {}", status);
}

void opencl_check(cl_int status, std::string_view what) {
  if (status == CL_SUCCESS) return;
  const bool memory = status == CL_MEM_OBJECT_ALLOCATION_FAILURE ||
                      status == CL_OUT_OF_HOST_MEMORY || status == CL_INVALID_BUFFER_SIZE;
  if (memory) {
    throw_error(Code::CannotRun, fmt::format("{}: {}", what, opencl_error(status)),
                "the device's memory is out: try a smaller --max-model-len or "
                "--max-num-batched-tokens");
  }
  throw_error(Code::Environment, fmt::format("{}: {}", what, opencl_error(status)),
              "the device may be lost or its driver broken: `octet probe` lists what can be used, "
              "--device cpu does without");
}

}  // namespace octet
