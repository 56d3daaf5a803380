#pragma once
// The kernels of one operation that this run may execute, as parameters of a test suite, and how to
// run them.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "op/catalog.h"
#include "tests/conformance/devices.h"

namespace octet::conformance {

// Every kernel of Op whose device and instructions this run has, whatever the problem.
template <class Op>
std::vector<const Kernel<Op>*> runnable() {
  std::vector<const Kernel<Op>*> found;
  for (const Kernel<Op>* kernel : kernels<Kernel<Op>>()) {
    const DeviceInfo& device = best_device();
    if (detail::device_refusals(kernel->device, kernel->needs, device).empty()) {
      found.push_back(kernel);
    }
  }
  return found;
}

// Runs one kernel of Op on a device with `threads` threads.
template <class Op>
void run_on(const Kernel<Op>& kernel, const typename Op::Args& args, int threads) {
  const std::unique_ptr<Device> device = make_device(threads);
  launch(kernel, args, *device->make_stream());
}

// A suite with one test per kernel: TEST_P(Suite, ...) reads kernel().
template <class Op>
class OpTest : public testing::TestWithParam<const Kernel<Op>*> {
 public:
  static std::string parameter_name(const testing::TestParamInfo<const Kernel<Op>*>& info) {
    return test_name(info.param->name);
  }

 protected:
  const Kernel<Op>& kernel() const { return *this->GetParam(); }

  // Why the kernel does not take `problem`; empty: it does.
  std::vector<Refusal> refused(const typename Op::Problem& problem) const {
    return refusals(kernel(), problem, best_device());
  }
};

}  // namespace octet::conformance
