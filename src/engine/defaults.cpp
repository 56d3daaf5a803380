#include "engine/defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace octet {
namespace {

using Json = nlohmann::json;

double number(const Json& object, std::string_view key, double fallback, double min, double max) {
  const auto it = object.find(key);
  if (it == object.end() || it->is_null()) return fallback;
  if (it->is_number() && it->get<double>() >= min && it->get<double>() <= max)
    return it->get<double>();
  throw_error(Code::BadInput,
              fmt::format("generation_config.json: /{}: expected a number from {} to {}, got {}",
                          key, min, max, it->dump()),
              "mend or remove the file");
}

void add_ids(const Json& value, std::vector<int32_t>& ids) {
  for (const Json& id : value.is_array() ? value : Json::array({value})) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > INT32_MAX) {
      throw_error(Code::BadInput,
                  fmt::format("generation_config.json: /eos_token_id: expected token ids, got {}",
                              value.dump()),
                  "mend or remove the file");
    }
    ids.push_back(id.get<int32_t>());
  }
}

}  // namespace

GenerationDefaults generation_defaults(const Json* generation,
                                       std::span<const int32_t> config_eos) {
  GenerationDefaults defaults;
  defaults.stop_ids.assign(config_eos.begin(), config_eos.end());
  if (generation != nullptr) {
    const Json& g = *generation;
    const auto eos = g.find("eos_token_id");
    if (eos != g.end() && !eos->is_null()) add_ids(*eos, defaults.stop_ids);
    SamplingParams& s = defaults.sampling;
    s.repetition_penalty = static_cast<float>(number(g, "repetition_penalty", 1, 1e-3, 1e3));
    const auto sample = g.find("do_sample");
    if (sample != g.end() && sample->is_boolean() && sample->get<bool>()) {
      s.temperature = static_cast<float>(number(g, "temperature", 1, 0, 1e3));
      s.top_p = static_cast<float>(number(g, "top_p", 1, 0, 1));
      s.top_k = static_cast<int32_t>(number(g, "top_k", 50, 0, 1 << 24));
      s.min_p = static_cast<float>(number(g, "min_p", 0, 0, 1));
    }
  }
  std::sort(defaults.stop_ids.begin(), defaults.stop_ids.end());
  defaults.stop_ids.erase(std::unique(defaults.stop_ids.begin(), defaults.stop_ids.end()),
                          defaults.stop_ids.end());
  return defaults;
}

}  // namespace octet
