#pragma once
// The devices that a conformance run may use: this host at every instruction set it has, or, in the
// build through SIMDe, the emulated device.
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"

namespace octet::conformance {

// One level of instructions to run kernels at.
struct Level {
  std::string isa;  // "baseline", "avx2", "avx512" as --max-isa takes them, or "emulated"
  DeviceInfo info;
};

// Every level that this host can run, lowest first; one level in the emulated build.
const std::vector<Level>& levels();

// Finds them. The suite is compiled once; each of its programs links its own definition.
std::vector<Level> find_levels();

// Opens the device of a level, with `threads` threads where that means something. Defined beside
// find_levels().
std::unique_ptr<Device> open_device(const DeviceInfo& info, int threads);

// The device with all that this host can do.
const DeviceInfo& best_device();

// A device that runs kernels of best_device() on `threads` threads.
std::unique_ptr<Device> make_device(int threads);

// "cpu.linear.w8a16.f8.avx2" as a word that gtest takes as a parameter name.
std::string test_name(std::string_view kernel_name);

}  // namespace octet::conformance
