// The level of the suite that runs on an OpenCL device: the first one of the runtime that the
// environment names (OCL_ICD_VENDORS, which the OpenCL loader reads).
//
// Suites of small operations give kernels addresses of the host's own memory; the devices here are
// CPUs, which can follow them.
#include <filesystem>

#include "device/opencl.h"
#include "tests/conformance/devices.h"

namespace octet::conformance {
namespace {

std::filesystem::path cache() {
  return std::filesystem::temp_directory_path() / "octet-opencl-tests";
}

}  // namespace

std::vector<Level> find_levels() {
  return {{"opencl", probe_opencl(0, cache())}};
}

std::unique_ptr<Device> open_device(const DeviceInfo&, int) {
  return make_opencl_device(0, cache());
}

}  // namespace octet::conformance
