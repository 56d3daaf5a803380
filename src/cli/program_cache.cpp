#include "cli/program_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include "base/printable.h"

namespace octet {

std::filesystem::path program_cache() {
  const auto below = [](const char* variable) -> std::filesystem::path {
    const char* value = std::getenv(variable);
    return value == nullptr ? "" : value;
  };
  const std::filesystem::path cache = below("XDG_CACHE_HOME");
  if (cache.is_absolute()) return cache / "octet" / "opencl";
  const std::filesystem::path home = below("HOME");
  return home.is_absolute() ? home / ".cache" / "octet" / "opencl" : std::filesystem::path();
}

void warn_about_program_cache() {
  static bool done = false;
  if (std::exchange(done, true)) return;
  constexpr uintmax_t kLeast = uintmax_t{16} << 20;
  std::filesystem::path folder = program_cache();
  std::error_code error;
  while (folder.has_relative_path() && !std::filesystem::exists(folder, error))
    folder = folder.parent_path();
  std::string problem;
  if (folder.empty()) {
    problem = "there is no folder for them: HOME and XDG_CACHE_HOME are not set";
  } else if (access(folder.c_str(), W_OK) != 0) {
    problem = fmt::format("{} cannot be written", folder.string());
  } else if (const auto space = std::filesystem::space(folder, error);
             !error && space.available < kLeast) {
    problem = fmt::format("{} has {} bytes left", folder.string(), space.available);
  }
  if (problem.empty()) return;
  fmt::print(stderr,
             "octet: note: OpenCL programs are not kept, and drivers that keep their own may fail: "
             "{}; XDG_CACHE_HOME names another folder\n",
             printable_name(problem));
}

}  // namespace octet
