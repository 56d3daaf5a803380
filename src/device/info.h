#pragma once
// What a device is: a value that a probe, a profile file or a test makes.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "num/enum_set.h"

namespace octet {

// Emulated: CPU kernels compiled for another instruction set through SIMDe; exists in test programs
// only.
enum class DeviceKind : uint8_t { Cpu, OpenCl, Cuda, Emulated };
constexpr std::string_view name(DeviceKind k) {
  constexpr std::string_view kNames[] = {"cpu", "opencl", "cuda", "emulated"};
  return kNames[static_cast<int>(k)];
}

// What a device can do. Avx2 means AVX2 and FMA; Avx512 means F, BW, DQ and VL. Of OpenCL devices:
// ClSubgroup<n> runs kernels with n work-items to a subgroup, their block reads, shuffles and sums;
// ClDpas<n> has Intel's matrix engine with n columns; ClExactDivide divides as IEEE 754 does.
enum class Feature : uint8_t {
  Avx2,
  F16c,
  Avx512,
  Avx512Bf16,
  Avx512Vbmi,
  Avx512Vnni,
  ClFp16,
  ClBf16,
  ClExactDivide,
  ClSubgroup8,
  ClSubgroup16,
  ClDpas8,
  ClDpas16,
  ClUsm,
  Sm80,
  Sm89,
  Sm90,
};
constexpr int kFeatureCount = 17;
constexpr std::string_view name(Feature f) {
  constexpr std::string_view kNames[] = {
      "avx2",          "f16c",     "avx512",    "avx512_bf16",     "avx512_vbmi",
      "avx512_vnni",   "cl_fp16",  "cl_bf16",   "cl_exact_divide", "cl_subgroup8",
      "cl_subgroup16", "cl_dpas8", "cl_dpas16", "cl_usm",          "sm80",
      "sm89",          "sm90"};
  return kNames[static_cast<int>(f)];
}
using Features = EnumSet<Feature>;

struct DeviceInfo {
  DeviceKind kind = DeviceKind::Cpu;
  std::string name;  // of the product, as the device reports it
  Features features;
  uint64_t memory_bytes = 0;  // that a model may use
  int threads = 1;            // hardware threads this process may run on; 1 for other devices
  uint64_t max_allocation_bytes = 0;  // of one buffer; 0: as much as the memory has
  std::string driver = {};            // its version, where results may depend on it

  bool operator==(const DeviceInfo&) const = default;
};

// The instruction sets that --max-isa names, lowest first: "baseline", "avx2", "avx512".
// Returns `features` without those above `isa`. Throws BadInput for another word.
Features mask_isa(Features features, std::string_view isa);

// This machine's CPU by CPUID and XGETBV, memory and affinity by the operating system.
DeviceInfo probe_cpu();

// A device profile as JSON text (the output of `octet probe --json`), and back. Throws BadInput
// naming the field.
std::string to_json(const DeviceInfo& info);
DeviceInfo device_info_from_json(std::string_view text, std::string_view source);

}  // namespace octet
