#include "io/json_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "io/hub_cache.h"

namespace octet {
namespace {

constexpr uint64_t kMaxBytes = 16U << 20;
// Values are copied and printed by recursion.
constexpr int kMaxDepth = 64;

[[noreturn]] void throw_too_deep(const std::filesystem::path& path) {
  throw_error(Code::BadInput, fmt::format("{} is nested over {} deep", path.string(), kMaxDepth));
}

}  // namespace

nlohmann::json read_json_object(const std::filesystem::path& path) {
  check_fetched(path);
  const std::string text = read_text_file(path, kMaxBytes);
  const auto limit_depth = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > kMaxDepth) throw_too_deep(path);
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
    throw_error(Code::BadInput,
                fmt::format("{} is not JSON: {}", path.string(), printable_name(what)),
                refetch_hint(path));
  }
  if (!value.is_object()) {
    throw_error(Code::BadInput, fmt::format("{} holds a JSON {}, expected an object", path.string(),
                                            value.type_name()));
  }
  return value;
}

std::vector<std::string> duplicate_keys(const std::filesystem::path& path) {
  const std::string text = read_text_file(path, kMaxBytes);
  struct Level {
    std::set<std::string> keys;
    std::string last;
  };
  std::vector<Level> levels;  // objects that are open
  std::vector<std::string> found;
  const auto watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) levels.emplace_back();
    if (event == Event::object_end) levels.pop_back();
    if (depth > kMaxDepth) throw_too_deep(path);
    if (event != Event::key) return true;
    levels.back().last = value.get<std::string>();
    if (levels.back().keys.insert(levels.back().last).second) return true;
    std::string place;
    for (const Level& level : levels) place += "/" + level.last;
    if (std::find(found.begin(), found.end(), place) == found.end()) found.push_back(place);
    return true;
  };
  try {
    const nlohmann::json parsed = nlohmann::json::parse(text, watch);
  } catch (const nlohmann::json::exception&) {
    return {};
  }
  return found;
}

}  // namespace octet
