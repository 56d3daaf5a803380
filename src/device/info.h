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

// What a device can do. Avx2 means AVX2 and FMA; Avx512 means F, BW, DQ and VL.
enum class Feature : uint8_t {
  Avx2,
  F16c,
  Avx512,
  Avx512Bf16,
  Avx512Vbmi,
  Avx512Vnni,
  ClFp16,
  ClSubgroups,
  ClDpas,
  ClUsm,
  Sm80,
  Sm89,
  Sm90,
};
constexpr int kFeatureCount = 13;
constexpr std::string_view name(Feature f) {
  constexpr std::string_view kNames[] = {
      "avx2",         "f16c",    "avx512", "avx512_bf16", "avx512_vbmi", "avx512_vnni", "cl_fp16",
      "cl_subgroups", "cl_dpas", "cl_usm", "sm80",        "sm89",        "sm90"};
  return kNames[static_cast<int>(f)];
}
using Features = EnumSet<Feature>;

struct DeviceInfo {
  DeviceKind kind = DeviceKind::Cpu;
  std::string name;  // of the product, as the device reports it
  Features features;
  uint64_t memory_bytes = 0;  // that a model may use
  int threads = 1;            // hardware threads this process may run on; 1 for other devices

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
