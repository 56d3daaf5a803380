#include "model/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/printable.h"
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

// `parent` is the path of `object` in config.json, with its slash, for messages.
double number(const Json& object, std::string_view key, std::optional<double> fallback,
              std::string_view parent = "") {
  const Json* value = find(object, key);
  const std::string path = fmt::format("{}{}", parent, key);
  if (value == nullptr) {
    if (fallback) return *fallback;
    bad_field(path, "a number", nullptr);
  }
  if (!value->is_number()) bad_field(path, "a number", value);
  const double result = value->get<double>();
  if (!(result > -1e30 && result < 1e30)) bad_field(path, "a finite number", value);
  return result;
}

double positive(const Json& object, std::string_view key, std::optional<double> fallback,
                std::string_view parent = "") {
  const double value = number(object, key, fallback, parent);
  if (value <= 0) bad_field(fmt::format("{}{}", parent, key), "a number over 0", find(object, key));
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

constexpr std::string_view kRopeKeys[] = {
    "rope_type",        "type",           "rope_theta",       "factor",
    "low_freq_factor",  "mscale_all_dim", "high_freq_factor", "original_max_position_embeddings",
    "beta_fast",        "beta_slow",      "truncate",         "attention_factor",
    "mscale",           "short_factor",   "long_factor",      "partial_rotary_factor",
    "mrope_section",    "finetuned",      "short_mscale",     "long_mscale",
    "mrope_interleaved"};

// A misspelt key would leave its default in force without a word.
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

// The part of a head that is rotated. transformers' models of most families rotate all of it
// whatever the field says.
double rotary_factor(const Json& config, const DecoderDefaults& defaults,
                     std::vector<std::string>& notes) {
  double factor = number(config, "partial_rotary_factor", defaults.rotary_factor);
  factor = rope_field(config).number_of("partial_rotary_factor", factor);
  if (defaults.rotates_part || factor == 1) return factor;
  notes.emplace_back(
      "config.json: /partial_rotary_factor has no effect: this family rotates whole heads");
  return 1;
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
  note_unknown_rope_keys(config, model.notes);
  model.mlp = read_mlp(config, d.intermediate);
  model.tied_embeddings = optional_bool(config, "tie_word_embeddings", false);
  model.windows = std::vector<int64_t>(static_cast<size_t>(d.layers), 0);
  model.eos_ids = read_eos(config);
  return model;
}

}  // namespace octet
