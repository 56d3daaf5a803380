#include "cli/text_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"

namespace octet {

std::string read_text_file(const std::string& path, std::string_view flag) {
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path)) {
    throw_error(Code::BadInput, fmt::format("{} {}: cannot be read", flag, path),
                "name a readable text file");
  }
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace octet
