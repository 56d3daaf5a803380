#pragma once
// A file that appears complete or not at all.
#include <filesystem>
#include <string_view>

namespace octet {

// Puts a file with `text` in the place of `path`, which may exist; until that is done the old one
// stays as it was. Throws BadInput when `path` is a folder or lies in none, Environment when it
// cannot be written.
void replace_file(const std::filesystem::path& path, std::string_view text);

}  // namespace octet
