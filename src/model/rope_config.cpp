// rope_scaling and rope_parameters of config.json.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/printable.h"
#include "model/config_fields.h"
#include "model/rope_angles.h"

namespace octet {
namespace {

using Json = nlohmann::json;
using config_json::bad_field;
using config_json::find;
using config_json::number;

// What the numbers of a rotation may be. Published ones lie far inside: bases from 1e4 to 1e11,
// factors up to 1024. Within these bounds no frequency in float32 becomes zero or infinite.
struct Bounds {
  double min;
  double max;
};
constexpr Bounds kTheta{1, 1e15};
constexpr Bounds kFactor{1e-4, 1e6};
constexpr Bounds kLength{1, 1 << 30};  // tokens

double in_bounds(const Json& value, const Bounds& bounds, std::string_view path) {
  const double number = value.is_number() ? value.get<double>() : NAN;
  if (number >= bounds.min && number <= bounds.max) return number;
  bad_field(path, fmt::format("a number from {} to {}", bounds.min, bounds.max), &value);
}

// Field `key` of the whole config.json, within `bounds`.
double top_number(const Json& config, std::string_view key, const Bounds& bounds, double fallback) {
  const Json* value = find(config, key);
  return value == nullptr ? fallback : in_bounds(*value, bounds, key);
}

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
  // `fallback` is not measured: it comes from elsewhere, or from this program.
  double bounded(std::string_view key, const Bounds& bounds, std::optional<double> fallback) const {
    const Json* got = find(value, key);
    if (got == nullptr && fallback) return *fallback;
    if (got == nullptr) bad_field(path(key), "a number", nullptr);
    return in_bounds(*got, bounds, path(key));
  }
  std::string path(std::string_view key) const { return fmt::format("{}{}", parent, key); }
  [[noreturn]] void bad(std::string_view key, std::string_view expected) const {
    bad_field(path(key), expected, find(value, key));
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
  if (list == nullptr || !list->is_array())
    field.bad(key, fmt::format("a list of {} numbers", pairs));
  if (static_cast<int64_t>(list->size()) != pairs) {
    throw_error(Code::BadInput,
                fmt::format("config.json: /{}: expected {} numbers, one per rotated pair, got {}",
                            field.path(key), pairs, list->size()),
                "the list must be as long as half the rotated part of a head");
  }
  std::vector<double> factors;
  for (const Json& factor : *list) {
    const std::string path = fmt::format("{}/{}", field.path(key), factors.size());
    factors.push_back(in_bounds(factor, kFactor, path));
  }
  return factors;
}

// Factor of cos and sin of LongRoPE (arXiv 2402.13753, as Phi-3 uses it).
double longrope_attention_factor(const RopeField& field, const RopeConfig& rope,
                                 int64_t max_position) {
  const double stretch = field.bounded(
      "factor", kFactor, static_cast<double>(max_position) / rope.original_max_position);
  if (field.find_key("attention_factor") != nullptr)
    return field.bounded("attention_factor", kFactor, 1);
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
  constexpr Bounds kScale{0, 1e6};  // 0: as if it were absent
  const double m = field.bounded("mscale", kScale, 0);
  const double all = field.bounded("mscale_all_dim", kScale, 0);
  if (field.find_key("attention_factor") != nullptr)
    return field.bounded("attention_factor", kFactor, 1);
  const auto mscale = [&](double scale, double weight) {
    return scale <= 1 ? 1.0 : 0.1 * weight * std::log(scale) + 1.0;
  };
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

int64_t read_rotary_dim(const Json& config, int64_t head_dim, const DecoderDefaults& defaults,
                        std::vector<std::string>& notes) {
  constexpr std::string_view kKey = "partial_rotary_factor";
  const RopeField field = rope_field(config);
  const bool nested = field.find_key(kKey) != nullptr;
  const std::string path = nested ? field.path(kKey) : std::string(kKey);
  const Json* got = nested ? field.find_key(kKey) : find(config, kKey);
  double factor = field.number_of(kKey, number(config, kKey, defaults.rotary_factor));
  if (got != nullptr && !(factor > 0 && factor <= 1)) bad_field(path, "over 0, at most 1", got);
  if (!defaults.rotates_part && factor != 1) {
    notes.push_back(
        fmt::format("config.json: /{} has no effect: this family rotates whole heads", path));
    factor = 1;
    got = nullptr;
  }
  const auto dim = static_cast<int64_t>(static_cast<double>(head_dim) * factor);
  if (dim >= 2 && dim % 2 == 0) return dim;
  if (got == nullptr)
    bad_field("head_dim", fmt::format("an even number of rotated elements, not {}", dim),
              find(config, "head_dim"));
  bad_field(path,
            fmt::format("a part of head_dim {} with an even number of elements, 2 or more, not {}",
                        head_dim, dim),
            got);
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

namespace {

// The fields of a rotation that depend on its kind.
void read_kind(const RopeField& field, const Json& config, const ModelDims& dims,
               RopeConfig& rope) {
  if (rope.kind == RopeKind::Default) return;
  if (rope.kind != RopeKind::LongRope) rope.factor = field.bounded("factor", kFactor, std::nullopt);
  if (rope.kind == RopeKind::Linear) return;
  if (rope.kind == RopeKind::Dynamic) {
    // transformers measures the growth from max_position_embeddings, whatever the original was.
    rope.original_max_position = static_cast<double>(dims.max_position);
    if (rope.factor < 1) field.bad("factor", "1 or more");
    if (dims.rotary_dim <= 2) bad_field("head_dim", "more than one rotated pair", nullptr);
    return;
  }
  constexpr const char* kOriginal = "original_max_position_embeddings";
  rope.original_max_position =
      field.bounded(kOriginal, kLength,
                    top_number(config, kOriginal, kLength, static_cast<double>(dims.max_position)));
  if (rope.kind == RopeKind::LongRope) {
    read_longrope(field, dims, rope);
    return;
  }
  if (rope.kind == RopeKind::Llama3) {
    rope.low_freq_factor = field.bounded("low_freq_factor", kFactor, std::nullopt);
    rope.high_freq_factor = field.bounded("high_freq_factor", kFactor, std::nullopt);
    // Their difference, a float32, is a divisor.
    if (static_cast<float>(rope.high_freq_factor) <= static_cast<float>(rope.low_freq_factor))
      field.bad("high_freq_factor",
                fmt::format("more than low_freq_factor {}", rope.low_freq_factor));
    return;
  }
  rope.beta_fast = field.bounded("beta_fast", kFactor, 32);
  rope.beta_slow = field.bounded("beta_slow", kFactor, 1);
  rope.truncate = optional_bool(field.value, "truncate", true);
  rope.attention_factor = yarn_attention_factor(field, rope.factor);
}

// Whatever the single bounds let through together: a frequency that is no positive float turns
// every answer into noise.
void check_frequencies(const RopeField& field, const ModelDims& dims, const RopeConfig& rope) {
  for (const int64_t length : {int64_t{1}, std::max<int64_t>(dims.max_position, 1 << 24)}) {
    for (const float frequency : rope_frequencies(rope, dims.rotary_dim, length)) {
      if (std::isfinite(frequency) && frequency > 0) continue;
      throw_error(Code::BadInput,
                  fmt::format("config.json: /{}: the rotation has a frequency of {} at {} tokens, "
                              "expected a finite number over 0",
                              field.parent.substr(0, field.parent.size() - 1), frequency, length),
                  "check rope_theta and the factors");
    }
  }
}

}  // namespace

RopeConfig read_rope(const Json& config, const ModelDims& dims) {
  const RopeField field = rope_field(config);
  refuse_layered_rope(field);
  RopeConfig rope;
  rope.theta = field.bounded("rope_theta", kTheta, top_number(config, "rope_theta", kTheta, 10000));
  rope.kind = rope_kind(field);
  read_kind(field, config, dims, rope);
  check_frequencies(field, dims, rope);
  return rope;
}

}  // namespace octet
