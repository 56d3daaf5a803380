// rope_scaling and rope_parameters of config.json.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/printable.h"
#include "model/config_fields.h"

namespace octet {
namespace {

using Json = nlohmann::json;
using config_json::bad_field;
using config_json::find;
using config_json::number;
using config_json::positive;

struct RopeName {
  std::string_view word;
  RopeKind kind;
};
// "su" is the first name of LongRoPE. The axes of "mrope" are equal for text, which makes it the
// default.
constexpr RopeName kRopeNames[] = {
    {"default", RopeKind::Default},   {"mrope", RopeKind::Default}, {"linear", RopeKind::Linear},
    {"dynamic", RopeKind::Dynamic},   {"llama3", RopeKind::Llama3}, {"yarn", RopeKind::Yarn},
    {"longrope", RopeKind::LongRope}, {"su", RopeKind::LongRope},
};

// rope_scaling or rope_parameters, and its path in config.json for messages.
struct RopeField {
  const Json& value;
  std::string parent;  // "rope_scaling/"

  const Json* find_key(std::string_view key) const { return find(value, key); }
  double number_of(std::string_view key, std::optional<double> fallback) const {
    return number(value, key, fallback, parent);
  }
  double positive_of(std::string_view key, std::optional<double> fallback) const {
    return positive(value, key, fallback, parent);
  }
  [[noreturn]] void bad(std::string_view key, std::string_view expected) const {
    bad_field(fmt::format("{}{}", parent, key), expected, find(value, key));
  }
};

// transformers 5 writes rope_parameters, older ones rope_scaling. Which of two would count depends
// on its version.
RopeField rope_field(const Json& config) {
  static const Json kNone = Json::object();
  const Json* parameters = find(config, "rope_parameters");
  const Json* scaling = find(config, "rope_scaling");
  if (parameters != nullptr && scaling != nullptr && *parameters != *scaling) {
    throw_error(Code::BadInput,
                fmt::format("config.json: /rope_scaling {} contradicts /rope_parameters {}",
                            scaling->dump(), parameters->dump()),
                "leave one of them out");
  }
  const Json* found = parameters != nullptr ? parameters : scaling;
  const char* name = parameters != nullptr ? "rope_parameters" : "rope_scaling";
  if (found == nullptr) return {kNone, "rope_scaling/"};
  if (!found->is_object()) bad_field(name, "an object", found);
  return {*found, fmt::format("{}/", name)};
}

RopeKind rope_kind(const RopeField& field) {
  const Json* type = field.find_key("rope_type");
  const Json* older = field.find_key("type");
  // Qwen2-VL's writer says both, and means the default by "mrope".
  if (type != nullptr && older != nullptr && *type != *older && *older != "mrope")
    field.bad("type", fmt::format("the same as rope_type {}", type->dump()));
  const char* key = type != nullptr ? "rope_type" : "type";
  if (type == nullptr) type = older;
  if (type == nullptr) return RopeKind::Default;
  if (!type->is_string()) field.bad(key, "a name");
  const auto& word = type->get_ref<const std::string&>();
  for (const RopeName& known : kRopeNames) {
    if (word == known.word) return known.kind;
  }
  throw_error(Code::CannotRun,
              fmt::format("config.json: /{}{}: \"{}\" is not computed", field.parent, key, word),
              "known: default, linear, dynamic, llama3, yarn, longrope");
}

// LongRoPE's divisors, one per rotated pair.
std::vector<double> read_factors(const RopeField& field, std::string_view key, int64_t pairs) {
  const Json* list = field.find_key(key);
  if (list == nullptr || !list->is_array() || static_cast<int64_t>(list->size()) != pairs)
    field.bad(key, fmt::format("a list of {} numbers", pairs));
  std::vector<double> factors;
  for (const Json& factor : *list) {
    if (!factor.is_number() || !(factor.get<double>() > 0)) field.bad(key, "numbers over 0");
    factors.push_back(factor.get<double>());
  }
  return factors;
}

// Factor of cos and sin of LongRoPE (arXiv 2402.13753, as Phi-3 uses it).
double longrope_attention_factor(const RopeField& field, const RopeConfig& rope,
                                 int64_t max_position) {
  if (field.find_key("attention_factor") != nullptr) return field.number_of("attention_factor", 1);
  const double stretch =
      field.number_of("factor", static_cast<double>(max_position) / rope.original_max_position);
  if (stretch <= 1) return 1;
  return std::sqrt(1 + std::log(stretch) / std::log(rope.original_max_position));
}

void read_longrope(const RopeField& field, const ModelDims& dims, RopeConfig& rope) {
  rope.short_factor = read_factors(field, "short_factor", dims.rotary_dim / 2);
  rope.long_factor = read_factors(field, "long_factor", dims.rotary_dim / 2);
  if (rope.original_max_position <= 1) field.bad("original_max_position_embeddings", "more than 1");
  rope.attention_factor = longrope_attention_factor(field, rope, dims.max_position);
}

// One set of parameters for sliding and one for full attention.
void refuse_layered_rope(const RopeField& field) {
  for (const auto& [key, value] : field.value.items()) {
    if (!key.ends_with("_attention") || !value.is_object()) continue;
    throw_error(
        Code::CannotRun,
        fmt::format("config.json: /{}{}: rotations that differ by layer type are not computed",
                    field.parent, key),
        "known: one set of parameters for all layers");
  }
}

// Factor of cos and sin of YaRN (arXiv 2309.00071, section 3.4), as transformers derives it from
// the optional fields.
double yarn_attention_factor(const RopeField& field, double factor) {
  if (field.find_key("attention_factor") != nullptr) return field.number_of("attention_factor", 1);
  const auto mscale = [&](double scale, double weight) {
    return scale <= 1 ? 1.0 : 0.1 * weight * std::log(scale) + 1.0;
  };
  const double m = field.number_of("mscale", 0);
  const double all = field.number_of("mscale_all_dim", 0);
  if (m != 0 && all != 0) return mscale(factor, m) / mscale(factor, all);
  return mscale(factor, 1);
}

constexpr std::string_view kRopeKeys[] = {
    "rope_type",        "type",           "rope_theta",       "factor",
    "low_freq_factor",  "mscale_all_dim", "high_freq_factor", "original_max_position_embeddings",
    "beta_fast",        "beta_slow",      "truncate",         "attention_factor",
    "mscale",           "short_factor",   "long_factor",      "partial_rotary_factor",
    "mrope_section",    "finetuned",      "short_mscale",     "long_mscale",
    "mrope_interleaved"};

}  // namespace

double read_rotary_factor(const Json& config, const DecoderDefaults& defaults,
                          std::vector<std::string>& notes) {
  double factor = number(config, "partial_rotary_factor", defaults.rotary_factor);
  factor = rope_field(config).number_of("partial_rotary_factor", factor);
  if (defaults.rotates_part || factor == 1) return factor;
  notes.emplace_back(
      "config.json: /partial_rotary_factor has no effect: this family rotates whole heads");
  return 1;
}

void note_unknown_rope_keys(const Json& config, std::vector<std::string>& notes) {
  const RopeField field = rope_field(config);
  for (const auto& [key, value] : field.value.items()) {
    if (std::find(std::begin(kRopeKeys), std::end(kRopeKeys), key) != std::end(kRopeKeys)) continue;
    notes.push_back(
        fmt::format("config.json: /{}{} is not understood", field.parent, printable_name(key)));
  }
  const bool scaled = field.find_key("factor") != nullptr;
  if (scaled && field.find_key("rope_type") == nullptr && field.find_key("type") == nullptr)
    notes.push_back(
        fmt::format("config.json: /{}factor has no effect without a rope_type", field.parent));
}

RopeConfig read_rope(const Json& config, const ModelDims& dims) {
  const RopeField field = rope_field(config);
  refuse_layered_rope(field);
  RopeConfig rope;
  rope.theta = field.positive_of("rope_theta", positive(config, "rope_theta", 10000));
  rope.kind = rope_kind(field);
  if (rope.kind == RopeKind::Default) return rope;
  if (rope.kind != RopeKind::LongRope) rope.factor = field.positive_of("factor", std::nullopt);
  if (rope.kind == RopeKind::Linear) return rope;
  if (rope.kind == RopeKind::Dynamic) {
    // transformers measures the growth from max_position_embeddings, whatever the original was.
    rope.original_max_position = static_cast<double>(dims.max_position);
    if (rope.factor < 1) field.bad("factor", "1 or more");
    if (dims.rotary_dim <= 2) bad_field("head_dim", "more than one rotated pair", nullptr);
    return rope;
  }
  rope.original_max_position = field.positive_of(
      "original_max_position_embeddings",
      number(config, "original_max_position_embeddings", static_cast<double>(dims.max_position)));
  if (rope.kind == RopeKind::LongRope) {
    read_longrope(field, dims, rope);
    return rope;
  }
  if (rope.kind == RopeKind::Llama3) {
    rope.low_freq_factor = field.positive_of("low_freq_factor", std::nullopt);
    rope.high_freq_factor = field.positive_of("high_freq_factor", std::nullopt);
    if (rope.high_freq_factor <= rope.low_freq_factor)
      field.bad("high_freq_factor", "more than low_freq_factor");
    return rope;
  }
  rope.beta_fast = field.positive_of("beta_fast", 32);
  rope.beta_slow = field.positive_of("beta_slow", 1);
  rope.truncate = optional_bool(field.value, "truncate", true);
  rope.attention_factor = yarn_attention_factor(field, rope.factor);
  return rope;
}

}  // namespace octet
