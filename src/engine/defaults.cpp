#include "engine/defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace octet {
namespace {

using Json = nlohmann::json;

[[noreturn]] void bad_field(std::string_view key, std::string_view expected, const Json& got) {
  throw_error(
      Code::BadInput,
      fmt::format("generation_config.json: /{}: expected {}, got {}", key, expected, got.dump()),
      "mend or remove the file");
}

// The field, or null when it is absent or null.
const Json* find(const Json& object, std::string_view key) {
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

float number(const Json& object, std::string_view key, float fallback, double min, double max) {
  const Json* value = find(object, key);
  if (value == nullptr) return fallback;
  if (value->is_number() && value->get<double>() >= min && value->get<double>() <= max)
    return value->get<float>();
  bad_field(key, fmt::format("a number from {} to {}", min, max), *value);
}

// top_k; -1 is written for "all" as 0 is.
int32_t count(const Json& object, std::string_view key, int32_t fallback) {
  constexpr int64_t kMost = 1 << 24;
  const Json* value = find(object, key);
  if (value == nullptr) return fallback;
  const bool sound = value->is_number_integer() && value->get<double>() >= -1 &&
                     value->get<double>() <= static_cast<double>(kMost);
  if (!sound) bad_field(key, fmt::format("a whole number from -1 to {}", kMost), *value);
  return std::max<int32_t>(0, value->get<int32_t>());
}

bool boolean(const Json& object, std::string_view key) {
  const Json* value = find(object, key);
  if (value != nullptr && !value->is_boolean()) bad_field(key, "true or false", *value);
  return value != nullptr && value->get<bool>();
}

std::vector<int32_t> token_ids(const Json& object, std::string_view key) {
  std::vector<int32_t> ids;
  const Json* value = find(object, key);
  if (value == nullptr) return ids;
  for (const Json& id : value->is_array() ? *value : Json::array({*value})) {
    if (!id.is_number_integer() || id.get<double>() < 0 || id.get<double>() > INT32_MAX)
      bad_field(key, "token ids", *value);
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

// Adds the ids that the model can say; each of the others is a note.
void add_stops(std::span<const int32_t> ids, std::string_view file, int64_t vocab,
               GenerationDefaults& defaults) {
  for (const int32_t id : ids) {
    if (id < vocab) {
      defaults.stop_ids.push_back(id);
    } else {
      defaults.notes.push_back(
          fmt::format("{}: /eos_token_id: {} is outside the vocabulary of {} and ends no answer",
                      file, id, vocab));
    }
  }
}

// Fields of transformers that would change an answer, and the value that changes nothing.
struct UnusedField {
  std::string_view key;
  double neutral;
};
constexpr UnusedField kUnused[] = {
    {"num_beams", 1},
    {"no_repeat_ngram_size", 0},
    {"typical_p", 1},
    {"epsilon_cutoff", 0},
    {"eta_cutoff", 0},
    {"diversity_penalty", 0},
    {"min_new_tokens", 0},
    {"min_length", 0},
    {"encoder_repetition_penalty", 1},
    {"penalty_alpha", 0},
    {"guidance_scale", 1},
    {"bad_words_ids", 0},
    {"suppress_tokens", 0},
    {"begin_suppress_tokens", 0},
    {"stop_strings", 0},
    {"forced_bos_token_id", -1},
    {"forced_eos_token_id", -1},
};

void note_unused(const Json& g, GenerationDefaults& defaults) {
  for (const UnusedField& field : kUnused) {
    const Json* value = find(g, field.key);
    if (value == nullptr || (value->is_structured() && value->empty()) ||
        (value->is_number() && value->get<double>() == field.neutral))
      continue;
    defaults.notes.push_back(fmt::format("generation_config.json: /{} has no effect", field.key));
  }
}

std::optional<int64_t> positive(const Json& object, std::string_view key) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const Json* value = find(object, key);
  if (value == nullptr) return std::nullopt;
  const bool sound = value->is_number_integer() && value->get<double>() >= 1 &&
                     value->get<double>() <= static_cast<double>(kMost);
  if (!sound) bad_field(key, fmt::format("a whole number from 1 to {}", kMost), *value);
  return value->get<int64_t>();
}

}  // namespace

GenerationDefaults generation_defaults(const Json* generation, std::span<const int32_t> config_eos,
                                       int64_t vocab) {
  GenerationDefaults defaults;
  add_stops(config_eos, "config.json", vocab, defaults);
  if (generation != nullptr) {
    const Json& g = *generation;
    add_stops(token_ids(g, "eos_token_id"), "generation_config.json", vocab, defaults);
    SamplingParams given;  // read in any case: nonsense is nonsense whether or not it is used
    given.temperature = number(g, "temperature", 1, 0, 1e3);
    given.top_p = number(g, "top_p", 1, 0, 1);
    given.top_k = count(g, "top_k", 50);
    given.min_p = number(g, "min_p", 0, 0, 1);
    if (boolean(g, "do_sample")) defaults.sampling = given;
    defaults.sampling.repetition_penalty = number(g, "repetition_penalty", 1, 1e-3, 1e3);
    defaults.max_tokens = positive(g, "max_new_tokens");
    note_unused(g, defaults);
  }
  std::sort(defaults.stop_ids.begin(), defaults.stop_ids.end());
  defaults.stop_ids.erase(std::unique(defaults.stop_ids.begin(), defaults.stop_ids.end()),
                          defaults.stop_ids.end());
  return defaults;
}

}  // namespace octet
