// Device profiles: DeviceInfo as JSON text and back.
//   {"kind": "cpu", "name": "...", "features": ["avx2"], "memory_bytes": 1, "threads": 1}
// and, where they apply, "max_allocation_bytes", "driver" and "sources": where the numbers are
// from, which is for people.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "device/info.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kFields = {"kind",         "name",    "features",
                                "memory_bytes", "threads", "max_allocation_bytes",
                                "driver",       "sources"};

// The kinds that a profile may name: Emulated exists in test programs only.
constexpr std::array kKinds = {DeviceKind::Cpu, DeviceKind::OpenCl, DeviceKind::Cuda};

// Where a message points: the source of the text and a JSON pointer.
struct Place {
  std::string_view source;
  std::string_view field;
};

[[noreturn]] void fail(const Place& place, const std::string& expected, const Json& got) {
  std::string shown = got.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr size_t kLongest = 80;
  if (shown.size() > kLongest) shown = shown.substr(0, kLongest) + "...";
  throw_error(Code::BadInput, fmt::format("{}: /{}: expected {}, got {}", place.source, place.field,
                                          expected, shown));
}

DeviceKind kind_of(const Json& value, const Place& place) {
  if (value.is_string()) {
    const auto word = value.get<std::string>();
    for (DeviceKind kind : kKinds) {
      if (name(kind) == word) return kind;
    }
  }
  fail(place, "\"cpu\", \"opencl\" or \"cuda\"", value);
}

// The kind of device that has a feature.
DeviceKind kind_with(Feature feature) {
  const std::string_view word = name(feature);
  if (word.starts_with("cl_")) return DeviceKind::OpenCl;
  return word.starts_with("sm") ? DeviceKind::Cuda : DeviceKind::Cpu;
}

Features features_of(const Json& value, DeviceKind kind, const Place& place) {
  if (!value.is_array()) fail(place, "a list of feature names", value);
  Features features;
  for (const Json& item : value) {
    Features all;
    bool known = false;
    for (int i = 0; i < kFeatureCount; ++i) {
      const auto feature = static_cast<Feature>(i);
      if (kind_with(feature) != kind) continue;
      all.insert(feature);
      if (!item.is_string() || name(feature) != item.get<std::string>()) continue;
      features.insert(feature);
      known = true;
    }
    if (!known) {
      fail(place, fmt::format("features of {} among {{{}}}", name(kind), to_string(all)), item);
    }
  }
  return features;
}

uint64_t count_of(const Json& value, const Place& place, uint64_t least, uint64_t most) {
  if (value.is_number_unsigned()) {
    const auto count = value.get<uint64_t>();
    if (count >= least && count <= most) return count;
  }
  fail(place, fmt::format("a whole number from {} to {}", least, most), value);
}

}  // namespace

std::string to_json(const DeviceInfo& info) {
  Json features = Json::array();
  info.features.each([&](Feature f) { features.push_back(std::string(name(f))); });
  Json json = {{"kind", std::string(name(info.kind))},
               {"name", info.name},
               {"features", features},
               {"memory_bytes", info.memory_bytes},
               {"threads", info.threads}};
  if (info.max_allocation_bytes != 0) json["max_allocation_bytes"] = info.max_allocation_bytes;
  if (!info.driver.empty()) json["driver"] = info.driver;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

DeviceInfo device_info_from_json(std::string_view text, std::string_view source) {
  Json json;
  std::vector<std::string> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, const Json& value) {
    if (depth == 1 && event == Json::parse_event_t::key) keys.push_back(value.get<std::string>());
    return true;
  };
  try {
    json = Json::parse(text, watch);
  } catch (const Json::out_of_range&) {  // a number that no double holds
    throw_error(Code::BadInput, fmt::format("{}: a number in it is too large", source),
                "`octet probe --json` writes a profile");
  } catch (const Json::parse_error& error) {
    throw_error(
        Code::BadInput,
        fmt::format("{}: a device profile is JSON; byte {} does not fit", source, error.byte),
        "make one with: octet probe --json > PROFILE.json");
  }
  if (!json.is_object()) fail({source, ""}, "an object", json);
  for (const std::string& key : keys) {
    if (std::count(keys.begin(), keys.end(), key) == 1) continue;
    throw_error(Code::BadInput, fmt::format("{}: /{}: this field is there twice", source, key));
  }
  for (const auto& [key, value] : json.items()) {
    if (std::find(kFields.begin(), kFields.end(), key) != kFields.end()) continue;
    throw_error(Code::BadInput, fmt::format("{}: /{}: a device profile has no such field; it has "
                                            "kind, name, features, memory_bytes, threads, "
                                            "max_allocation_bytes, driver, sources",
                                            source, key));
  }
  const auto field = [&](std::string_view key) -> const Json& {
    const auto found = json.find(std::string(key));
    if (found == json.end()) {
      throw_error(Code::BadInput, fmt::format("{}: /{}: this field is missing", source, key));
    }
    return *found;
  };
  DeviceInfo info;
  info.kind = kind_of(field("kind"), {source, "kind"});
  const Json& product = field("name");
  if (!product.is_string() || product.get_ref<const std::string&>().empty())
    fail({source, "name"}, "a string that is not empty", product);
  info.name = product.get<std::string>();
  info.features = features_of(field("features"), info.kind, {source, "features"});
  // 2^60: no sum of byte counts of a plan overflows.
  info.memory_bytes =
      count_of(field("memory_bytes"), {source, "memory_bytes"}, 1, uint64_t{1} << 60);
  // 4096: more hardware threads than any machine that runs this has.
  info.threads = static_cast<int>(count_of(field("threads"), {source, "threads"}, 1, 4096));
  if (json.contains("max_allocation_bytes")) {
    info.max_allocation_bytes = count_of(field("max_allocation_bytes"),
                                         {source, "max_allocation_bytes"}, 1, uint64_t{1} << 60);
  }
  if (json.contains("driver")) {
    const Json& driver = field("driver");
    if (!driver.is_string()) fail({source, "driver"}, "a string", driver);
    info.driver = driver.get<std::string>();
  }
  if (json.contains("sources")) {
    const Json& sources = field("sources");
    const bool lines =
        sources.is_array() &&
        std::all_of(sources.begin(), sources.end(), [](const Json& s) { return s.is_string(); });
    if (!lines) fail({source, "sources"}, "a list of strings", sources);
  }
  return info;
}

}  // namespace octet
