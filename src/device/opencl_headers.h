#pragma once
// The OpenCL headers with the versions and extensions that Octet uses.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
