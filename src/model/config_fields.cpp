#include "model/config_fields.h"

#include <fmt/format.h>

#include "base/error.h"
#include "io/json_field.h"

namespace octet {
namespace config_json {

using Json = nlohmann::json;

const Json* find(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

void bad_field(std::string_view key, std::string_view expected, const Json* got) {
  throw_error(Code::BadInput,
              fmt::format("config.json: /{}: expected {}, got {}", key, expected,
                          got == nullptr ? "nothing" : shown_value(*got)),
              "the file must be the config.json that transformers wrote for the model");
}

int64_t int_in_range(const Json& value, std::string_view key, int64_t min, int64_t max) {
  if (!value.is_number_integer()) bad_field(key, "a whole number", &value);
  const auto number = value.get<int64_t>();
  if (number < min || number > max) bad_field(key, fmt::format("{} to {}", min, max), &value);
  return number;
}

double number(const Json& object, std::string_view key, std::optional<double> fallback,
              std::string_view parent) {
  const Json* value = find(object, key);
  const std::string path = fmt::format("{}{}", parent, key);
  if (value == nullptr) {
    if (fallback) return *fallback;
    bad_field(path, "a number", nullptr);
  }
  if (!value->is_number()) bad_field(path, "a number", value);
  const double result = value->get<double>();
  if (!(result > -1e30 && result < 1e30)) bad_field(path, "a number between -1e30 and 1e30", value);
  return result;
}

double positive(const Json& object, std::string_view key, std::optional<double> fallback,
                std::string_view parent) {
  const double value = number(object, key, fallback, parent);
  if (value <= 0) bad_field(fmt::format("{}{}", parent, key), "a number over 0", find(object, key));
  return value;
}

}  // namespace config_json

using config_json::bad_field;
using config_json::find;

int64_t required_int(const nlohmann::json& config, std::string_view key, int64_t min, int64_t max) {
  const nlohmann::json* value = find(config, key);
  if (value == nullptr) bad_field(key, "a whole number", nullptr);
  return config_json::int_in_range(*value, key, min, max);
}

int64_t optional_int(const nlohmann::json& config, std::string_view key, int64_t fallback,
                     int64_t min, int64_t max) {
  const nlohmann::json* value = find(config, key);
  return value == nullptr ? fallback : config_json::int_in_range(*value, key, min, max);
}

double optional_number(const nlohmann::json& config, std::string_view key, double fallback) {
  return config_json::number(config, key, fallback);
}

bool optional_bool(const nlohmann::json& config, std::string_view key, bool fallback) {
  const nlohmann::json* value = find(config, key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) bad_field(key, "true or false", value);
  return value->get<bool>();
}

}  // namespace octet
