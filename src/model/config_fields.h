#pragma once
// Fields of config.json with the messages that refuse them; shared by the files that read it.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config_reader.h"

namespace octet::config_json {

// Member `key` of an object, or null when it is absent, null, or `object` is none.
const nlohmann::json* find(const nlohmann::json& object, std::string_view key);

// Throws BadInput "config.json: /KEY: expected ..., got ...".
[[noreturn]] void bad_field(std::string_view key, std::string_view expected,
                            const nlohmann::json* got);

// Each throws bad_field(). `parent` is the path of `object` in config.json, with its slash.
int64_t int_in_range(const nlohmann::json& value, std::string_view key, int64_t min, int64_t max);
double number(const nlohmann::json& object, std::string_view key, std::optional<double> fallback,
              std::string_view parent = "");
double positive(const nlohmann::json& object, std::string_view key, std::optional<double> fallback,
                std::string_view parent = "");

}  // namespace octet::config_json
