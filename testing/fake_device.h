#pragma once
// A device that runs the CPU kernels and whose memory the host cannot touch: proof that a forward
// pass follows device pointers in operations only.
#include <memory>

#include "device/device.h"

namespace octet {

// Described by `info`, which must be of a CPU. Memory is open only during operations and copies of
// its streams; any other access faults (SIGSEGV). Weights are copied to it: it does not read host
// memory in place. `bytes` bytes in all; freed memory is not used again.
std::unique_ptr<Device> make_fake_device(const DeviceInfo& info, int threads,
                                         size_t bytes = size_t{64} << 20);

}  // namespace octet
