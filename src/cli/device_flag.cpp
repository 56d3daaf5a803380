#include "cli/device_flag.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "cli/program_cache.h"
#include "device/opencl.h"

namespace octet {
namespace {

constexpr uintmax_t kMaxProfileBytes = 1 << 20;
constexpr std::string_view kDevices = "devices of this program: cpu, opencl[:N], xpu";

DeviceInfo read_profile(const std::string& path) {
  std::string text;
  try {
    text = read_text_file(path, kMaxProfileBytes);
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("--device {}: neither a device nor a readable profile file: {}", path,
                            error.message()),
                fmt::format("`octet probe --json > FILE` writes a profile; {}", kDevices));
  }
  try {
    return device_info_from_json(text, path);
  } catch (const Error& error) {
    throw error.or_hint("`octet probe --json > FILE` writes a sound profile to begin with");
  }
}

// The first OpenCL GPU. Throws CannotRun naming the devices seen.
int first_gpu() {
  std::string seen;
  for (const OpenClEntry& entry : list_opencl_devices()) {
    if (entry.gpu && entry.problem.empty()) return entry.index;
    seen += fmt::format("{}opencl:{} \"{}\"{}", seen.empty() ? "" : ", ", entry.index, entry.name,
                        entry.gpu ? " (" + entry.problem + ")" : " (no GPU)");
  }
  throw_error(Code::CannotRun, "--device xpu: there is no OpenCL GPU",
              seen.empty() ? "no OpenCL device was found; Debian's package intel-opencl-icd is the "
                             "driver of Intel GPUs"
                           : "devices seen: " + seen);
}

// The number of the OpenCL device that `word` names; nothing when it names none.
std::optional<int> opencl_index(std::string_view word) {
  constexpr std::string_view kName = "opencl";
  if (word == "xpu") return first_gpu();
  if (!word.starts_with(kName)) return std::nullopt;
  word.remove_prefix(kName.size());
  if (word.empty()) return 0;
  if (word.front() != ':') return std::nullopt;
  word.remove_prefix(1);
  int index = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  if (error == std::errc() && end == word.data() + word.size() && index >= 0) return index;
  throw_error(Code::BadInput, fmt::format("--device opencl:{}: expected a number", word),
              "`octet probe` lists the OpenCL devices with their numbers");
}

std::string device_word(const ParsedArgs& args) {
  return args.text("device").value_or("cpu");
}

}  // namespace

Flag device_flag(std::string_view group) {
  return {.name = "device",
          .kind = FlagKind::Path,
          .metavar = "DEVICE",
          .help =
              "cpu; opencl or opencl:N as octet probe lists them; xpu, the first OpenCL GPU; or "
              "a profile file made by octet probe --json",
          .default_value = "cpu",
          .group = group};
}

DeviceInfo device_named(const std::string& word, bool must_run) {
  if (word == "cpu") return probe_cpu();
  if (const auto index = opencl_index(word)) {
    warn_about_program_cache();
    return probe_opencl(*index, program_cache());
  }
  DeviceInfo device = read_profile(word);
  if (must_run) {
    throw_error(Code::CannotRun,
                fmt::format("--device {}: a profile can be planned for, not run on", word),
                fmt::format("use octet plan; {}", kDevices));
  }
  return device;
}

DeviceInfo device_of(const ParsedArgs& args, bool must_run, MaxIsa max_isa) {
  DeviceInfo device = device_named(device_word(args), must_run);
  const auto isa = args.text("max-isa");
  if (isa && device.kind != DeviceKind::Cpu) {
    throw_error(Code::BadInput,
                fmt::format("--max-isa {}: for --device cpu alone, the device is \"{}\" ({})", *isa,
                            printable_name(device.name), name(device.kind)),
                "leave it out; --disable NAME keeps kernels out on any device");
  }
  if (isa && max_isa == MaxIsa::Applied) device.features = mask_isa(device.features, *isa);
  const auto threads = args.integer("threads");
  if (threads && device.kind == DeviceKind::Cpu) device.threads = static_cast<int>(*threads);
  return device;
}

std::unique_ptr<Device> open_device(const ParsedArgs& args, const DeviceInfo& info) {
  if (const auto index = opencl_index(device_word(args)))
    return make_opencl_device(*index, program_cache());
  return make_cpu_device(info, info.threads);
}

}  // namespace octet
