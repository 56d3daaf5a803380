#pragma once
// The OpenCL library of the system, opened at run time: Octet starts without one and asks for it
// only when an OpenCL device is wanted.
#include <string>
#include <string_view>

#include "device/opencl_headers.h"

namespace octet {

// Entry points of libOpenCL.so.1 under their own names (OpenCL 3.0 API specification, section 4 to
// 5); all are of version 2.0 or older.
struct OpenClApi {
  decltype(&clGetPlatformIDs) get_platform_ids;
  decltype(&clGetPlatformInfo) get_platform_info;
  decltype(&clGetDeviceIDs) get_device_ids;
  decltype(&clGetDeviceInfo) get_device_info;
  decltype(&clCreateContext) create_context;
  decltype(&clReleaseContext) release_context;
  decltype(&clCreateCommandQueueWithProperties) create_queue;
  decltype(&clReleaseCommandQueue) release_queue;
  decltype(&clCreateProgramWithSource) create_program_with_source;
  decltype(&clCreateProgramWithBinary) create_program_with_binary;
  decltype(&clBuildProgram) build_program;
  decltype(&clGetProgramInfo) get_program_info;
  decltype(&clGetProgramBuildInfo) get_program_build_info;
  decltype(&clReleaseProgram) release_program;
  decltype(&clCreateKernel) create_kernel;
  decltype(&clReleaseKernel) release_kernel;
  decltype(&clSetKernelArg) set_kernel_arg;
  decltype(&clSetKernelArgSVMPointer) set_kernel_arg_svm;
  decltype(&clEnqueueNDRangeKernel) enqueue_kernel;
  decltype(&clSVMAlloc) svm_alloc;
  decltype(&clSVMFree) svm_free;
  decltype(&clEnqueueSVMMemcpy) enqueue_svm_copy;
  decltype(&clEnqueueSVMMemFill) enqueue_svm_fill;
  decltype(&clFlush) flush;
  decltype(&clFinish) finish;
  decltype(&clGetExtensionFunctionAddressForPlatform) extension_function;
};

// The library, opened by the first call. Throws CannotRun, with what to install, when there is
// none.
const OpenClApi& opencl_api();

// "CL_OUT_OF_RESOURCES (-5)".
std::string opencl_error(cl_int status);

// Throws "<what>: <error>" unless `status` is CL_SUCCESS: CannotRun when memory is out, else
// Environment.
void opencl_check(cl_int status, std::string_view what);

}  // namespace octet
