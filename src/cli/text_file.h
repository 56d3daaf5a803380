#pragma once
// Text files that flags name.
#include <string>
#include <string_view>

namespace octet {

// The whole file. Throws BadInput beginning with the flag and the path when it cannot be read.
std::string read_text_file(const std::string& path, std::string_view flag);

}  // namespace octet
