// The level of the suite that runs on an OpenCL device: the first one of the runtime that the
// environment names (OCL_ICD_VENDORS, which the OpenCL loader reads).
//
// Suites of small operations give kernels addresses of the host's own memory; the devices here are
// CPUs, which can follow them.
#include <filesystem>

#include "base/mapped_file.h"
#include "device/opencl.h"
#include "tests/conformance/devices.h"

namespace octet::conformance {
namespace {

std::filesystem::path cache() {
  return std::filesystem::temp_directory_path() / "octet-opencl-tests";
}

OpenClClaims claims() {
#ifdef OCTET_TEST_NARROW
  return {.adds = {},
          .drops = {Feature::ClSubgroup8, Feature::ClSubgroup16},
          .option = {},
          .prelude = {},
          .without = {},
          .narrow = true};
#else
  if (!probe_opencl(0, cache()).features.has(Feature::ClSubgroup16)) return {};
  // The matrix engine is emulated; the option is one that drivers of CPUs refuse.
  return {.adds = {Feature::ClDpas8, Feature::ClDpas16},
          .drops = {},
          .option = "-DOCTET_DPAS",
          .prelude = read_text_file(OCTET_DPAS_EMULATION, 1 << 20),
          .without = " -cl-intel-256-GRF-per-thread"};
#endif
}

}  // namespace

std::vector<Level> find_levels() {
  return {{"opencl", open_device({}, 1)->info()}};
}

std::unique_ptr<Device> open_device(const DeviceInfo&, int) {
  return make_opencl_device(0, cache(), claims());
}

}  // namespace octet::conformance
