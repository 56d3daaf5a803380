#pragma once
// Writing whole files: plainly, and so that one appears complete or not at all.
#include <filesystem>
#include <string_view>

namespace octet {

// Writes `text` to `path` and flushes it to the disk. Throws Environment naming `path`.
void write_file(const std::filesystem::path& path, std::string_view text);

// Puts a file with `text` in the place of `path`, which may exist; until that is done the old one
// stays as it was, and the new one has its mode. What is no regular file (a device, a FIFO; links
// are followed) and names of open files (/dev/stdout, /dev/fd/3) are never replaced: `text` is
// written into them.
// Throws BadInput when `path` is a folder or lies in none, Environment when it cannot be written.
void replace_file(const std::filesystem::path& path, std::string_view text);

}  // namespace octet
