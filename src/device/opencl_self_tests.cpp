#include "device/opencl_self_tests.h"

#include <algorithm>

#include "base/error.h"

namespace octet {

std::vector<const OpenClSelfTest*>& opencl_self_tests() {
  static std::vector<const OpenClSelfTest*> tests;
  return tests;
}

RegisterOpenClSelfTest::RegisterOpenClSelfTest(const OpenClSelfTest& test) {
  opencl_self_tests().push_back(&test);
}

Features passed_self_tests(Device& device, Features features) {
  for (const OpenClSelfTest* test : opencl_self_tests()) {
    if (!features.has(test->feature)) continue;
    bool passes = false;
    try {
      passes = test->passes(device);
    } catch (const Error&) {
      // A program that does not compile or run: the feature is not there.
      passes = false;
    }
    if (!passes) features.erase(test->feature);
  }
  return features;
}

std::string opencl_self_test_versions() {
  // Registration follows the order of linking, which says nothing.
  std::vector<std::string> versions;
  for (const OpenClSelfTest* test : opencl_self_tests()) versions.push_back(test->version());
  std::sort(versions.begin(), versions.end());
  std::string all;
  for (const std::string& version : versions) all += version + "\n";
  return all;
}

}  // namespace octet
