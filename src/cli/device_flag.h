#pragma once
// --device: which device a plan is for, and how it is opened.
#include <memory>

#include "cli/flags.h"
#include "device/device.h"

namespace octet {

// The flag, in a group of --help.
Flag device_flag(std::string_view group);

// Whether --max-isa counts: it does not for the second model of a command.
enum class MaxIsa : uint8_t { Applied, Ignored };

// The device that `word` names: "cpu", "opencl" or "opencl:N", "xpu" (the first OpenCL GPU), or a
// profile file. Throws CannotRun when `must_run` and it is a profile, or when there is no such
// OpenCL device.
DeviceInfo device_named(const std::string& word, bool must_run);

// The device of --device with --max-isa and --threads applied. Throws as device_named() does.
DeviceInfo device_of(const ParsedArgs& args, bool must_run, MaxIsa isa = MaxIsa::Applied);

// Opens the device that device_of(args) described as `info`.
std::unique_ptr<Device> open_device(const ParsedArgs& args, const DeviceInfo& info);

}  // namespace octet
