#include "io/json_file.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "io/hub_cache.h"

namespace octet {
namespace {

constexpr uint64_t kMaxBytes = 16U << 20;
// Values are copied and printed by recursion.
constexpr int kMaxDepth = 64;

}  // namespace

nlohmann::json read_json_object(const std::filesystem::path& path) {
  check_fetched(path);
  const std::string text = read_text_file(path, kMaxBytes);
  const auto limit_depth = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > kMaxDepth) {
      throw_error(Code::BadInput,
                  fmt::format("{} is nested over {} deep", path.string(), kMaxDepth));
    }
    return true;
  };
  nlohmann::json value;
  try {
    value = nlohmann::json::parse(text, limit_depth);
  } catch (const nlohmann::json::exception& e) {  // also numbers that no double holds
    // "[json.exception.parse_error.101] parse error at line ...": the bracket says nothing here.
    std::string_view what = e.what();
    if (const size_t end = what.find("] "); end != std::string_view::npos) {
      what.remove_prefix(end + 2);
    }
    throw_error(Code::BadInput, fmt::format("{} is not JSON: {}", path.string(), what),
                refetch_hint(path));
  }
  if (!value.is_object()) {
    throw_error(Code::BadInput, fmt::format("{} holds a JSON {}, expected an object", path.string(),
                                            value.type_name()));
  }
  return value;
}

}  // namespace octet
