#pragma once
// Small JSON files of a model folder.
#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace octet {

// The object in `path`. Throws BadInput naming file, line and column: absent, over 16 MiB, nested
// over 64 deep, not JSON, not an object; Environment when it cannot be read.
nlohmann::json read_json_object(const std::filesystem::path& path);

}  // namespace octet
