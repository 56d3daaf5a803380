#pragma once
// Small JSON files of a model folder.
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace octet {

// The object in `path`. Throws BadInput naming file, line and column: absent, over 16 MiB, nested
// over 64 deep, not JSON, not an object; Environment when it cannot be read.
nlohmann::json read_json_object(const std::filesystem::path& path);

// Keys that an object in the file has more than once, as paths ("/rope_scaling/type"), each once.
// Readers differ in which one counts. Empty where the file is no JSON. Throws as read_json_object()
// does for the rest.
std::vector<std::string> duplicate_keys(const std::filesystem::path& path);

}  // namespace octet
