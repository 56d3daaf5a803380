#include "device/opencl_cache.h"

#include <fmt/format.h>

#include <system_error>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/mapped_file.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kLargestEntry = uintmax_t{64} << 20;

// FNV-1a with 64 bits (draft-eastlake-fnv): names entries and finds damage; the key itself is
// compared too.
uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return hash;
}

fs::path entry_path(const fs::path& folder, std::string_view key) {
  return folder / fmt::format("{:016x}.clbin", fnv1a(key));
}

// What stands before the binary: both sizes, a checksum, the key. Its length follows from the key.
std::string header(std::string_view key, std::string_view binary) {
  return fmt::format("octet opencl program 1 {:016x} {:016x} {:016x}\n{}\n", key.size(),
                     binary.size(), fnv1a(binary), key);
}

}  // namespace

std::optional<std::string> cached_program(const fs::path& folder, std::string_view key) {
  if (folder.empty()) return std::nullopt;
  const fs::path path = entry_path(folder, key);
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  std::string text;
  try {
    text = read_text_file(path, kLargestEntry);
  } catch (const Error&) {
    return std::nullopt;
  }
  const size_t begin = header(key, {}).size();
  if (text.size() <= begin) return std::nullopt;
  std::string binary = text.substr(begin);
  if (!text.starts_with(header(key, binary))) return std::nullopt;
  return binary;
}

void cache_program(const fs::path& folder, std::string_view key, std::string_view binary) {
  if (folder.empty() || binary.size() + key.size() > kLargestEntry / 2) return;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return;
  try {
    replace_file(entry_path(folder, key), header(key, binary) + std::string(binary));
  } catch (const Error&) {
    // A disk that is full or a folder of another user: the next start compiles again.
    return;
  }
}

}  // namespace octet
