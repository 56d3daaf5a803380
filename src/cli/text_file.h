#pragma once
// Text files that flags name.
#include <string>
#include <string_view>

namespace octet {

// The whole file, at most 1 GiB. Errors of base/mapped_file.h, begun by the flag.
std::string read_flag_file(const std::string& path, std::string_view flag);

}  // namespace octet
