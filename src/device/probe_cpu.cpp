// Finds out what this machine's CPU is: instruction sets, name, memory, threads.
#include "device/probe_cpu.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/error.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace octet {
namespace detail {
namespace {

constexpr bool bit(uint64_t word, int index) {
  return (word >> index & 1U) != 0;
}

std::optional<uint64_t> leading_number(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  text.remove_prefix(begin);
  uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{}) return std::nullopt;
  return value;
}

// Calls f(line) for each line until it returns true.
template <class F>
void each_line(std::string_view text, F f) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (f(text.substr(0, end))) return;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

Features features_of(const CpuidWords& words) {
  constexpr uint64_t kYmm = 0x6;   // XCR0: SSE and AVX state
  constexpr uint64_t kZmm = 0xE6;  // and opmask, upper halves of ZMM0-15, ZMM16-31
  Features features;
  if (!bit(words.leaf1_ecx, 28) || (words.xcr0 & kYmm) != kYmm) return features;
  if (bit(words.leaf1_ecx, 29)) features.insert(Feature::F16c);
  if (!bit(words.leaf7_ebx, 5) || !bit(words.leaf1_ecx, 12)) return features;
  features.insert(Feature::Avx2);
  const bool foundation = bit(words.leaf7_ebx, 16) && bit(words.leaf7_ebx, 17) &&
                          bit(words.leaf7_ebx, 30) && bit(words.leaf7_ebx, 31);
  if (!foundation || (words.xcr0 & kZmm) != kZmm) return features;
  features.insert(Feature::Avx512);
  if (bit(words.leaf7_1_eax, 5)) features.insert(Feature::Avx512Bf16);
  if (bit(words.leaf7_ecx, 1)) features.insert(Feature::Avx512Vbmi);
  if (bit(words.leaf7_ecx, 11)) features.insert(Feature::Avx512Vnni);
  return features;
}

std::optional<uint64_t> meminfo_bytes(std::string_view meminfo, std::string_view key) {
  std::optional<uint64_t> bytes;
  each_line(meminfo, [&](std::string_view line) {
    if (line.size() <= key.size() || line.substr(0, key.size()) != key || line[key.size()] != ':') {
      return false;
    }
    if (const auto kib = leading_number(line.substr(key.size() + 1))) bytes = *kib * 1024;
    return true;
  });
  return bytes;
}

std::optional<uint64_t> stat_value(std::string_view stat, std::string_view key) {
  std::optional<uint64_t> value;
  each_line(stat, [&](std::string_view line) {
    if (line.size() <= key.size() || line.substr(0, key.size()) != key || line[key.size()] != ' ') {
      return false;
    }
    value = leading_number(line.substr(key.size()));
    return true;
  });
  return value;
}

std::optional<uint64_t> cgroup_limit(std::string_view text) {
  return leading_number(text);
}

std::optional<CgroupPath> cgroup_path(std::string_view proc_self_cgroup) {
  std::optional<CgroupPath> v1;
  std::optional<CgroupPath> v2;
  each_line(proc_self_cgroup, [&](std::string_view line) {
    const size_t first = line.find(':');
    if (first == std::string_view::npos) return false;
    const size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) return false;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (controllers == "memory") v1 = CgroupPath{true, path};
    if (controllers.empty() && line.substr(0, first) == "0") v2 = CgroupPath{false, path};
    return false;
  });
  return v1 ? v1 : v2;
}

}  // namespace detail

namespace {

#if defined(__x86_64__)
// XGETBV by its bytes' mnemonic: the intrinsic needs a flag that this file does not have.
uint64_t read_xcr0() {
  uint32_t low = 0;
  uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

Features probe_features() {
  detail::CpuidWords words;
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return {};
  words.leaf1_ecx = c;
  constexpr uint32_t kOsXsave = 1U << 27;
  if ((c & kOsXsave) != 0) words.xcr0 = read_xcr0();
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    words.leaf7_ebx = b;
    words.leaf7_ecx = c;
    const uint32_t last_subleaf = a;
    if (last_subleaf >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) words.leaf7_1_eax = a;
  }
  return detail::features_of(words);
}

// The brand string of leaves 0x80000002 to 0x80000004, without the spaces around it.
std::string probe_name() {
  char brand[49] = {};
  for (uint32_t i = 0; i < 3; ++i) {
    uint32_t words[4] = {};
    if (__get_cpuid(0x80000002U + i, &words[0], &words[1], &words[2], &words[3]) == 0) {
      return "x86-64 CPU";
    }
    std::memcpy(brand + 16 * i, words, sizeof words);
  }
  const std::string_view text(brand);
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return "x86-64 CPU";
  return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}
#else
Features probe_features() {
  return {};
}
std::string probe_name() {
  return "CPU";
}
#endif

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Bytes that the group at `folder` may still take: its limit less what cannot be reclaimed. Nothing
// without a limit.
std::optional<uint64_t> cgroup_room(const std::string& folder, bool v1) {
  const auto text = read_text(folder + (v1 ? "/memory.limit_in_bytes" : "/memory.max"));
  const auto limit = text ? detail::cgroup_limit(*text) : std::nullopt;
  if (!limit) return std::nullopt;
  uint64_t used = 0;
  if (const auto stat = read_text(folder + "/memory.stat")) {
    used = v1 ? detail::stat_value(*stat, "total_rss").value_or(0)
              : detail::stat_value(*stat, "anon").value_or(0) +
                    detail::stat_value(*stat, "shmem").value_or(0);
  }
  return *limit > used ? *limit - used : 0;
}

// The smallest room of this process's control group and its parents. A container sees its own group
// at the mount point, so that is looked at too.
std::optional<uint64_t> cgroup_room() {
  const auto text = read_text("/proc/self/cgroup");
  const auto group = text ? detail::cgroup_path(*text) : std::nullopt;
  if (!group) return std::nullopt;
  const std::string mount = group->v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
  std::optional<uint64_t> room;
  for (std::string path = group->path;;) {
    while (!path.empty() && path.back() == '/') path.pop_back();
    if (const auto here = cgroup_room(mount + path, group->v1)) {
      room = room ? std::min(*room, *here) : *here;
    }
    if (path.empty()) return room;
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
}

uint64_t probe_memory() {
  uint64_t bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                   static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
  if (const auto text = read_text("/proc/meminfo")) {
    bytes = detail::meminfo_bytes(*text, "MemAvailable").value_or(bytes);
  }
  if (const auto room = cgroup_room()) bytes = std::min(bytes, *room);
  return bytes;
}

int probe_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  // More processors than a cpu_set_t holds.
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

// Position of a feature in the order that --max-isa names: 0 for features of other devices.
int isa_level(Feature f) {
  switch (f) {
    case Feature::Avx2:
    case Feature::F16c:
      return 1;
    case Feature::Avx512:
    case Feature::Avx512Bf16:
    case Feature::Avx512Vbmi:
    case Feature::Avx512Vnni:
      return 2;
    case Feature::ClFp16:
    case Feature::ClBf16:
    case Feature::ClExactDivide:
    case Feature::ClSubgroup8:
    case Feature::ClSubgroup16:
    case Feature::ClDpas8:
    case Feature::ClDpas16:
    case Feature::ClUsm:
    case Feature::Sm80:
    case Feature::Sm89:
    case Feature::Sm90:
      return 0;
  }
  return 0;
}

}  // namespace

Features mask_isa(Features features, std::string_view isa) {
  constexpr std::string_view kLevels[] = {"baseline", "avx2", "avx512"};
  const auto* found = std::find(std::begin(kLevels), std::end(kLevels), isa);
  if (found == std::end(kLevels)) {
    throw_error(Code::BadInput,
                fmt::format("--max-isa expects baseline, avx2 or avx512, got \"{}\"", isa));
  }
  const auto level = static_cast<int>(found - std::begin(kLevels));
  Features masked = features;
  features.each([&](Feature f) {
    if (isa_level(f) > level) masked.erase(f);
  });
  return masked;
}

DeviceInfo probe_cpu() {
  return {DeviceKind::Cpu, probe_name(), probe_features(), probe_memory(), probe_threads()};
}

}  // namespace octet
