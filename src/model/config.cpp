#include "model/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/config_reader.h"

namespace octet {
namespace {

using Json = nlohmann::json;

std::vector<const ArchSpec*>& registered() {
  static std::vector<const ArchSpec*> list;
  return list;
}

const Json* find(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

[[noreturn]] void bad_field(std::string_view key, std::string_view expected, const Json* got) {
  throw_error(Code::BadInput,
              fmt::format("config.json: /{}: expected {}, got {}", key, expected,
                          got == nullptr ? "nothing" : got->dump()),
              "the file must be the config.json that transformers wrote for the model");
}

int64_t int_in_range(const Json& value, std::string_view key, int64_t min, int64_t max) {
  if (!value.is_number_integer()) bad_field(key, "a whole number", &value);
  const auto number = value.get<int64_t>();
  if (number < min || number > max) bad_field(key, fmt::format("{} to {}", min, max), &value);
  return number;
}

double number(const Json& object, std::string_view key, std::optional<double> fallback) {
  const Json* value = find(object, key);
  if (value == nullptr) {
    if (fallback) return *fallback;
    bad_field(key, "a number", nullptr);
  }
  if (!value->is_number()) bad_field(key, "a number", value);
  const double result = value->get<double>();
  if (!(result > -1e30 && result < 1e30)) bad_field(key, "a finite number", value);
  return result;
}

double positive(const Json& object, std::string_view key, std::optional<double> fallback) {
  const double value = number(object, key, fallback);
  if (value <= 0) bad_field(key, "a number over 0", find(object, key));
  return value;
}

std::vector<int32_t> read_eos(const Json& config) {
  const Json* eos = find(config, "eos_token_id");
  if (eos == nullptr) return {};
  std::vector<int32_t> ids;
  for (const Json& id : eos->is_array() ? *eos : Json::array({*eos})) {
    ids.push_back(static_cast<int32_t>(int_in_range(id, "eos_token_id", 0, INT32_MAX)));
  }
  return ids;
}

MlpConfig read_mlp(const Json& config, int64_t intermediate) {
  for (const std::string_view key : {"num_experts", "num_local_experts", "n_routed_experts"}) {
    if (find(config, key) == nullptr) continue;
    const int64_t experts = required_int(config, key, 0, 1 << 16);
    if (experts <= 1) continue;
    return ExpertMlp{experts, optional_int(config, "num_experts_per_tok", 1, 1, experts),
                     optional_int(config, "moe_intermediate_size", intermediate, 1, 1 << 24)};
  }
  return DenseMlp{intermediate, optional_bool(config, "mlp_bias", false)};
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

RopeKind rope_kind(const Json& scaling) {
  const Json* type = find(scaling, "rope_type");
  if (type == nullptr) type = find(scaling, "type");
  if (type == nullptr) return RopeKind::Default;
  if (!type->is_string()) bad_field("rope_scaling/rope_type", "a name", type);
  const auto& word = type->get_ref<const std::string&>();
  for (const RopeName& known : kRopeNames) {
    if (word == known.word) return known.kind;
  }
  throw_error(Code::CannotRun,
              fmt::format("config.json: /rope_scaling/rope_type: \"{}\" is not computed", word),
              "known: default, linear, dynamic, llama3, yarn, longrope");
}

// LongRoPE's divisors, one per rotated pair.
std::vector<double> read_factors(const Json& scaling, std::string_view key, int64_t pairs) {
  const std::string path = fmt::format("rope_scaling/{}", key);
  const Json* list = find(scaling, key);
  if (list == nullptr || !list->is_array() || static_cast<int64_t>(list->size()) != pairs)
    bad_field(path, fmt::format("a list of {} numbers", pairs), list);
  std::vector<double> factors;
  for (const Json& factor : *list) {
    if (!factor.is_number() || !(factor.get<double>() > 0))
      bad_field(path, "numbers over 0", &factor);
    factors.push_back(factor.get<double>());
  }
  return factors;
}

// Factor of cos and sin of LongRoPE (arXiv 2402.13753, as Phi-3 uses it).
double longrope_attention_factor(const Json& scaling, const RopeConfig& rope,
                                 int64_t max_position) {
  if (find(scaling, "attention_factor") != nullptr) return number(scaling, "attention_factor", 1);
  const double stretch =
      number(scaling, "factor", static_cast<double>(max_position) / rope.original_max_position);
  if (stretch <= 1) return 1;
  return std::sqrt(1 + std::log(stretch) / std::log(rope.original_max_position));
}

void read_longrope(const Json& scaling, const ModelDims& dims, RopeConfig& rope) {
  rope.short_factor = read_factors(scaling, "short_factor", dims.rotary_dim / 2);
  rope.long_factor = read_factors(scaling, "long_factor", dims.rotary_dim / 2);
  if (rope.original_max_position <= 1)
    bad_field("original_max_position_embeddings", "more than 1", nullptr);
  rope.attention_factor = longrope_attention_factor(scaling, rope, dims.max_position);
}

// The part of a head that is rotated. transformers' models of most families rotate all of it
// whatever the field says.
double rotary_factor(const Json& config, const DecoderDefaults& defaults,
                     std::vector<std::string>& notes) {
  double factor = number(config, "partial_rotary_factor", defaults.rotary_factor);
  if (const Json* rope = find(config, "rope_parameters"))
    factor = number(*rope, "partial_rotary_factor", factor);
  if (defaults.rotates_part || factor == 1) return factor;
  notes.emplace_back(
      "config.json: /partial_rotary_factor has no effect: this family rotates whole heads");
  return 1;
}

// transformers 5 writes rope_parameters, older ones rope_scaling. Which of two would count depends
// on its version.
void refuse_two_ropes(const Json& config) {
  const Json* parameters = find(config, "rope_parameters");
  const Json* scaling = find(config, "rope_scaling");
  if (parameters == nullptr || scaling == nullptr || *parameters == *scaling) return;
  throw_error(Code::BadInput,
              fmt::format("config.json: /rope_scaling {} contradicts /rope_parameters {}",
                          scaling->dump(), parameters->dump()),
              "leave one of them out");
}

// One set of parameters for sliding and one for full attention.
void refuse_layered_rope(const Json& scaling) {
  for (const auto& [key, value] : scaling.items()) {
    if (!key.ends_with("_attention") || !value.is_object()) continue;
    throw_error(Code::CannotRun,
                fmt::format("config.json: /rope_parameters/{}: rotations that differ by layer type "
                            "are not computed",
                            key),
                "known: one set of parameters for all layers");
  }
}

// Factor of cos and sin of YaRN (arXiv 2309.00071, section 3.4), as transformers derives it from
// the optional fields.
double yarn_attention_factor(const Json& scaling, double factor) {
  if (find(scaling, "attention_factor") != nullptr) return number(scaling, "attention_factor", 1);
  const auto mscale = [&](double scale, double weight) {
    return scale <= 1 ? 1.0 : 0.1 * weight * std::log(scale) + 1.0;
  };
  const Json* m = find(scaling, "mscale");
  const Json* all = find(scaling, "mscale_all_dim");
  if (m != nullptr && all != nullptr && number(scaling, "mscale", 0) != 0 &&
      number(scaling, "mscale_all_dim", 0) != 0) {
    return mscale(factor, number(scaling, "mscale", 1)) /
           mscale(factor, number(scaling, "mscale_all_dim", 1));
  }
  return mscale(factor, 1);
}

const ArchSpec* spec_of_text_type(const Json& text) {
  const Json* type = find(text, "model_type");
  if (type == nullptr || !type->is_string()) return nullptr;
  for (const ArchSpec* spec : architectures()) {
    if (*type == spec->model_type ||
        std::any_of(spec->text_types.begin(), spec->text_types.end(),
                    [&](std::string_view other) { return *type == other; }))
      return spec;
  }
  return nullptr;
}

void check_model_type(const Json& config, const std::string& architecture, const ArchSpec& spec) {
  const Json* type = find(config, "model_type");
  if (type == nullptr) return;
  if (!type->is_string()) bad_field("model_type", "a name", type);
  if (*type == spec.model_type) return;
  throw_error(Code::BadInput,
              fmt::format("config.json: /model_type: {} contradicts /architectures: \"{}\" is of "
                          "model_type \"{}\"",
                          type->dump(), architecture, spec.model_type),
              "octet goes by architectures, transformers by model_type: make them agree");
}

// Fields by which other families change what a decoder computes, and the value that changes
// nothing. The families of this program have none of them, in transformers as here.
struct ForeignField {
  std::string_view key;
  double neutral;
};
constexpr ForeignField kForeign[] = {
    {"attn_logit_softcapping", 0}, {"final_logit_softcapping", 0}, {"logit_scale", 1},
    {"logits_scaling", 1},         {"residual_multiplier", 1},     {"embedding_multiplier", 1},
    {"attention_multiplier", 0},   {"query_pre_attn_scalar", 0},   {"clip_qkv", 0},
    {"no_rope_layers", 0},         {"attention_chunk_size", 0},
};

bool is_neutral(const Json& value, double neutral) {
  if (value.is_number()) return value.get<double>() == neutral;
  return value.empty() || value == false;
}

std::vector<std::string> foreign_fields(const Json& config, std::string_view architecture) {
  std::vector<std::string> notes;
  for (const ForeignField& field : kForeign) {
    const Json* value = find(config, field.key);
    if (value == nullptr || is_neutral(*value, field.neutral)) continue;
    notes.push_back(fmt::format("config.json: /{} has no effect in {}", field.key, architecture));
  }
  return notes;
}

}  // namespace

detail::RegisterArch::RegisterArch(const ArchSpec& spec) {
  registered().push_back(&spec);
}

std::span<const ArchSpec* const> architectures() {
  return registered();
}

std::vector<std::string_view> architecture_names() {
  std::vector<std::string_view> names;
  for (const ArchSpec* spec : architectures())
    names.insert(names.end(), spec->hf_names.begin(), spec->hf_names.end());
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

const std::string& architecture_of(const Json& config) {
  const Json* names = find(config, "architectures");
  if (names == nullptr || !names->is_array() || names->empty() || !names->front().is_string()) {
    bad_field("architectures", "a list with one name", names);
  }
  return names->front().get_ref<const std::string&>();
}

ModelConfig read_as(const ArchSpec& spec, std::string_view architecture, const Json& config) {
  ModelConfig result = spec.read_config(config);
  result.architecture = architecture;
  const std::vector<std::string> foreign = foreign_fields(config, architecture);
  result.notes.insert(result.notes.end(), foreign.begin(), foreign.end());
  return result;
}

// A wrapper's text model. What its own part leaves out, the whole says.
ModelConfig read_wrapped(const Json& config, const Json& text) {
  const std::string& name = architecture_of(config);
  const ArchSpec* spec = spec_of_text_type(text);
  if (spec == nullptr) {
    const Json* type = find(text, "model_type");
    throw_error(
        Code::CannotRun,
        fmt::format("config.json: /text_config/model_type: {} of \"{}\" is not a text model "
                    "octet knows",
                    type == nullptr ? "nothing" : type->dump(), name),
        fmt::format("known: the text models of {}", fmt::join(architecture_names(), ", ")));
  }
  Json merged = text;
  for (const char* key : {"tie_word_embeddings", "eos_token_id"}) {
    const Json* own = find(config, key);
    if (own != nullptr && find(merged, key) == nullptr) merged[key] = *own;
  }
  ModelConfig result = read_as(*spec, spec->hf_names.front(), merged);
  result.wrapper = name;
  result.notes.push_back(
      fmt::format("config.json: /text_config: the text model of {} is run, text only", name));
  return result;
}

}  // namespace

ModelConfig read_config(const Json& config) {
  const Json* text = find(config, "text_config");
  if (text != nullptr && text->is_object()) return read_wrapped(config, *text);
  const std::string& name = architecture_of(config);
  for (const ArchSpec* spec : architectures()) {
    if (std::find(spec->hf_names.begin(), spec->hf_names.end(), name) == spec->hf_names.end())
      continue;
    check_model_type(config, name, *spec);
    return read_as(*spec, name, config);
  }
  throw_error(
      Code::CannotRun,
      fmt::format("config.json: /architectures: \"{}\" is not an architecture octet knows", name),
      fmt::format("known: {}", fmt::join(architecture_names(), ", ")));
}

int64_t required_int(const Json& config, std::string_view key, int64_t min, int64_t max) {
  const Json* value = find(config, key);
  if (value == nullptr) bad_field(key, "a whole number", nullptr);
  return int_in_range(*value, key, min, max);
}

int64_t optional_int(const Json& config, std::string_view key, int64_t fallback, int64_t min,
                     int64_t max) {
  const Json* value = find(config, key);
  return value == nullptr ? fallback : int_in_range(*value, key, min, max);
}

double optional_number(const Json& config, std::string_view key, double fallback) {
  return number(config, key, fallback);
}

bool optional_bool(const Json& config, std::string_view key, bool fallback) {
  const Json* value = find(config, key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) bad_field(key, "true or false", value);
  return value->get<bool>();
}

RopeConfig read_rope(const Json& config, const ModelDims& dims) {
  refuse_two_ropes(config);
  RopeConfig rope;
  const Json* scaling = find(config, "rope_parameters");
  if (scaling == nullptr) scaling = find(config, "rope_scaling");
  static const Json kNone = Json::object();
  if (scaling == nullptr) scaling = &kNone;
  if (!scaling->is_object()) bad_field("rope_scaling", "an object", scaling);
  refuse_layered_rope(*scaling);
  rope.theta = positive(config, "rope_theta", 10000);
  rope.theta = positive(*scaling, "rope_theta", rope.theta);
  rope.kind = rope_kind(*scaling);
  if (rope.kind == RopeKind::Default) return rope;
  if (rope.kind != RopeKind::LongRope) rope.factor = positive(*scaling, "factor", std::nullopt);
  if (rope.kind == RopeKind::Linear) return rope;
  if (rope.kind == RopeKind::Dynamic) {
    // transformers measures the growth from max_position_embeddings, whatever the original was.
    rope.original_max_position = static_cast<double>(dims.max_position);
    if (rope.factor < 1) bad_field("rope_scaling/factor", "1 or more", find(*scaling, "factor"));
    if (dims.rotary_dim <= 2) bad_field("head_dim", "more than one rotated pair", nullptr);
    return rope;
  }
  rope.original_max_position = positive(
      *scaling, "original_max_position_embeddings",
      number(config, "original_max_position_embeddings", static_cast<double>(dims.max_position)));
  if (rope.kind == RopeKind::LongRope) {
    read_longrope(*scaling, dims, rope);
    return rope;
  }
  if (rope.kind == RopeKind::Llama3) {
    rope.low_freq_factor = positive(*scaling, "low_freq_factor", std::nullopt);
    rope.high_freq_factor = positive(*scaling, "high_freq_factor", std::nullopt);
    if (rope.high_freq_factor <= rope.low_freq_factor) {
      bad_field("rope_scaling/high_freq_factor", "more than low_freq_factor",
                find(*scaling, "high_freq_factor"));
    }
    return rope;
  }
  rope.beta_fast = positive(*scaling, "beta_fast", 32);
  rope.beta_slow = positive(*scaling, "beta_slow", 1);
  rope.truncate = optional_bool(*scaling, "truncate", true);
  rope.attention_factor = yarn_attention_factor(*scaling, rope.factor);
  return rope;
}

std::vector<int64_t> read_windows(const Json& config, int64_t layers, int64_t window,
                                  int64_t first) {
  std::vector<int64_t> windows(static_cast<size_t>(layers), 0);
  const Json* types = find(config, "layer_types");
  if (types != nullptr && (!types->is_array() || types->size() != windows.size())) {
    bad_field("layer_types", fmt::format("a list of {} names", layers), types);
  }
  for (size_t i = 0; i < windows.size(); ++i) {
    if (types == nullptr) {
      windows[i] = static_cast<int64_t>(i) >= first ? window : 0;
      continue;
    }
    const Json& type = (*types)[i];
    if (type == "sliding_attention") {
      if (window <= 0)
        bad_field("sliding_window", "a number, for layer_types names sliding_attention",
                  find(config, "sliding_window"));
      windows[i] = window;
    } else if (type != "full_attention") {
      bad_field(fmt::format("layer_types/{}", i), "full_attention or sliding_attention", &type);
    }
  }
  return windows;
}

ModelConfig read_decoder_config(const Json& config, const DecoderDefaults& defaults) {
  constexpr int64_t kMaxWidth = 1 << 20;
  ModelConfig model;
  ModelDims& d = model.dims;
  d.layers = required_int(config, "num_hidden_layers", 1, 4096);
  d.hidden = required_int(config, "hidden_size", 1, kMaxWidth);
  d.heads = required_int(config, "num_attention_heads", 1, 4096);
  d.kv_heads = optional_int(config, "num_key_value_heads", d.heads, 1, 4096);
  if (d.heads % d.kv_heads != 0) {
    bad_field("num_key_value_heads", fmt::format("a divisor of num_attention_heads {}", d.heads),
              find(config, "num_key_value_heads"));
  }
  if (find(config, "head_dim") == nullptr && defaults.head_dim == 0 && d.hidden % d.heads != 0) {
    bad_field("hidden_size",
              fmt::format("a multiple of num_attention_heads {}, or a head_dim", d.heads),
              find(config, "hidden_size"));
  }
  const int64_t head_dim =
      defaults.head_dim != 0 ? defaults.head_dim : std::max<int64_t>(1, d.hidden / d.heads);
  d.head_dim = optional_int(config, "head_dim", head_dim, 2, 4096);
  const double rotary = rotary_factor(config, defaults, model.notes);
  d.rotary_dim = static_cast<int64_t>(static_cast<double>(d.head_dim) * rotary);
  if (d.rotary_dim < 2 || d.rotary_dim > d.head_dim || d.rotary_dim % 2 != 0) {
    bad_field("head_dim", "an even number of rotated elements", find(config, "head_dim"));
  }
  d.intermediate = required_int(config, "intermediate_size", 1, 1 << 24);
  d.vocab = required_int(config, "vocab_size", 1, 1 << 24);
  d.max_position =
      optional_int(config, "max_position_embeddings", defaults.max_position, 1, int64_t{1} << 30);
  model.rms_epsilon = positive(config, "rms_norm_eps", defaults.rms_epsilon);
  const Json* act = find(config, "hidden_act");
  if (act != nullptr && *act != "silu" && *act != "swish") {
    throw_error(Code::CannotRun,
                fmt::format("config.json: /hidden_act: {} is not computed", act->dump()),
                "known: silu");
  }
  model.rope = read_rope(config, d);
  model.mlp = read_mlp(config, d.intermediate);
  model.tied_embeddings = optional_bool(config, "tie_word_embeddings", false);
  model.windows = std::vector<int64_t>(static_cast<size_t>(d.layers), 0);
  model.eos_ids = read_eos(config);
  return model;
}

}  // namespace octet
