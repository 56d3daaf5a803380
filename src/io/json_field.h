#pragma once
// Typed reading of JSON values whose errors name the place.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octet {

// One value of a config with its path, "quantization_config.config_groups.group_0.weights"; the
// whole has the path "" and is named "the top level". The JSON must outlive it. Every reader throws
// BadInput with path, expected and got.
class JsonField {
 public:
  JsonField(const nlohmann::json& value, std::string path)
      : value_(&value), path_(std::move(path)) {}

  const nlohmann::json& value() const { return *value_; }
  const std::string& path() const { return path_; }

  // The member `key` of this object; nothing when absent or null, which mean the same everywhere.
  std::optional<JsonField> find(std::string_view key) const;
  // The same for a member that must be there.
  JsonField at(std::string_view key) const;

  JsonField object() const;    // this, proven to be an object
  std::string string() const;  // as written
  std::string word() const;    // in lower case
  int64_t integer() const;     // a whole number, not a string or a float
  bool boolean() const;
  std::vector<std::string> strings() const;
  std::vector<JsonField> elements() const;                         // of an array
  std::vector<std::pair<std::string, JsonField>> members() const;  // of an object, sorted by key

  // Throws "path is VALUE, expected EXPECTED".
  [[noreturn]] void fail(std::string_view expected, std::string_view hint = {}) const;

 private:
  const nlohmann::json* value_;
  std::string path_;
};

// A value as a message shows it: short, and printable whatever it holds.
std::string shown_value(const nlohmann::json& value);

// True for null, {}, [] and "": what writers put where a feature is off.
bool is_empty_value(const nlohmann::json& value);

}  // namespace octet
