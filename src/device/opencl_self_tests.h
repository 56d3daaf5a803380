#pragma once
// Tests that kernels put before a feature of an OpenCL device: what a driver has but computes wrong
// is not used. They run once for a device and driver; the result is kept with the features.
#include <string>
#include <vector>

#include "device/device.h"

namespace octet {

// One test.
struct OpenClSelfTest {
  Feature feature;
  // Names what is tested: a new version runs again where an older one has run.
  std::string (*version)();
  // True when the device computes as it should. Throws what a device throws.
  bool (*passes)(Device& device);
};

// Every test of this program; linked kernels add theirs before main().
std::vector<const OpenClSelfTest*>& opencl_self_tests();

struct RegisterOpenClSelfTest {
  explicit RegisterOpenClSelfTest(const OpenClSelfTest& test);
};

// `features` without those whose tests fail on `device`.
Features passed_self_tests(Device& device, Features features);

// The versions of all tests, for the name of a kept result.
std::string opencl_self_test_versions();

}  // namespace octet
