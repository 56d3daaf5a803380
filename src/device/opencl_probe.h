#pragma once
// What an open OpenCL device can do.
#include "device/opencl_context.h"

namespace octet {

// Name, memory, limits and features of the device behind `context`; features are tried on `device`.
DeviceInfo describe_opencl(Device& device, const OpenClContext& context);

}  // namespace octet
