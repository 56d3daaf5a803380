#pragma once
// The decisions of probe_cpu() apart from the machine they are about, so that tests can feed them.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "device/info.h"

namespace octet::detail {

// The words of CPUID and XGETBV that say what the processor and the operating system support.
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, CPUID.
struct CpuidWords {
  uint32_t leaf1_ecx = 0;
  uint32_t leaf7_ebx = 0;
  uint32_t leaf7_ecx = 0;
  uint32_t leaf7_1_eax = 0;
  uint64_t xcr0 = 0;  // 0 when the operating system does not use XSAVE
};

// The features that both the processor has and the operating system saves registers for.
Features features_of(const CpuidWords& words);

// The bytes of the line "key:  N kB" of /proc/meminfo, or nothing.
std::optional<uint64_t> meminfo_bytes(std::string_view meminfo, std::string_view key);

// The value of the line "key N" of a memory.stat file, or nothing.
std::optional<uint64_t> stat_value(std::string_view stat, std::string_view key);

// The number in a cgroup limit file, or nothing for "max" and text that is no number.
std::optional<uint64_t> cgroup_limit(std::string_view text);

// The path of this process in the memory controller's hierarchy, from /proc/self/cgroup: version 1
// ("4:memory:/a") when it is there, else version 2 ("0::/a").
struct CgroupPath {
  bool v1 = false;
  std::string path;
  bool operator==(const CgroupPath&) const = default;
};
std::optional<CgroupPath> cgroup_path(std::string_view proc_self_cgroup);

}  // namespace octet::detail
