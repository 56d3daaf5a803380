#pragma once
// Compiled OpenCL programs on disk. An entry is only as good as its key: a broken or foreign one is
// as none.
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace octet {

// The binary kept under `key` in `folder`; nothing when there is none, or it is damaged.
std::optional<std::string> cached_program(const std::filesystem::path& folder,
                                          std::string_view key);

// Keeps `binary` under `key`. A cache that cannot be written is none: nothing is thrown.
void cache_program(const std::filesystem::path& folder, std::string_view key,
                   std::string_view binary);

}  // namespace octet
