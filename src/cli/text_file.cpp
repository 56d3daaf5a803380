#include "cli/text_file.h"

#include "base/error.h"
#include "base/mapped_file.h"

namespace octet {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

}  // namespace

std::string read_flag_file(const std::string& path, std::string_view flag) {
  try {
    return read_text_file(path, kMaxBytes);
  } catch (const Error& error) {
    throw error.with(flag);
  }
}

}  // namespace octet
