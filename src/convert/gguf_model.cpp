#include "convert/gguf_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "base/printable.h"

namespace octet {
namespace {

using Json = nlohmann::json;

constexpr std::array kFamilies{
    GgufFamily{"llama", "LlamaForCausalLM", "llama", true, false, false},
    GgufFamily{"qwen2", "Qwen2ForCausalLM", "qwen2", false, true, false},
    GgufFamily{"qwen3", "Qwen3ForCausalLM", "qwen3", false, false, true},
};

constexpr int64_t kMaxWidth = 1 << 20;

// Values by which a file asks for another computation, and the one that asks for nothing.
struct ForeignValue {
  std::string_view key;
  double neutral;
};
constexpr ForeignValue kForeign[] = {
    {"expert_count", 0},           {"attention.sliding_window", 0},
    {"attention.clamp_kqv", 0},    {"attention.max_alibi_bias", 0},
    {"attention.scale", 0},        {"logit_scale", 1},
    {"residual_scale", 1},         {"embedding_scale", 1},
    {"attn_logit_softcapping", 0}, {"final_logit_softcapping", 0},
    {"use_parallel_residual", 0},  {"nextn_predict_layers", 0},
};

// Values that are read, or say nothing that the others do not.
constexpr std::string_view kKnown[] = {
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.layer_norm_rms_epsilon",
    "attention.causal",
    "rope.freq_base",
    "rope.dimension_count",
    "rope.scale_linear",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    "rope.scaling.finetuned",
    "rope.scaling.attn_factor",
    "rope.scaling.yarn_ext_factor",
    "rope.scaling.yarn_attn_factor",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "rope.scaling.yarn_log_multiplier",
    "vocab_size",
    "tensor_data_layout",
    "expert_used_count",
};

const GgufFamily& family_of(const GgufFile& file) {
  const std::string_view name = file.text("general.architecture");
  std::vector<std::string_view> known;
  for (const GgufFamily& family : kFamilies) {
    if (family.name == name) return family;
    known.push_back(family.name);
  }
  throw_error(Code::CannotRun,
              fmt::format("{}: general.architecture \"{}\" is not one that octet imports",
                          file.path().string(), printable_name(name)),
              fmt::format("known: {}", fmt::join(known, ", ")));
}

// What a value says, for a message; nothing when it says `neutral`.
std::optional<std::string> not_neutral(const GgufValue& value, double neutral) {
  double number = 0;
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    number = static_cast<double>(*integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    number = *real;
  } else if (const auto* flag = std::get_if<bool>(&value)) {
    number = *flag ? 1 : 0;
  } else {
    return "no single number";
  }
  return number == neutral ? std::nullopt : std::optional(fmt::format("{}", number));
}

// Adapters, projectors and importance matrices have the form of models, and their architecture.
void check_type(const GgufFile& file) {
  constexpr std::string_view kKey = "general.type";
  const std::string_view type = file.find_text(kKey).value_or("model");
  if (type == "model") return;
  throw_error(Code::CannotRun,
              fmt::format("{}: {} is \"{}\", expected \"model\"", file.path().string(), kKey,
                          printable_name(type)),
              type == "adapter" ? "name the model, or one that the adapter was merged into: "
                                  "llama-export-lora makes it"
                                : "name the file of the model itself");
}

void check_foreign(const GgufFile& file, const GgufFamily& family) {
  for (const ForeignValue& foreign : kForeign) {
    const std::string key = fmt::format("{}.{}", family.name, foreign.key);
    const GgufValue* value = file.find_value(key);
    const auto found = value == nullptr ? std::nullopt : not_neutral(*value, foreign.neutral);
    if (!found) continue;
    throw_error(Code::CannotRun,
                fmt::format("{}: {} is {}: {} does not compute that", file.path().string(), key,
                            *found, family.architecture),
                "only a file without this value, or with a neutral one, can be imported");
  }
  const std::string causal = fmt::format("{}.attention.causal", family.name);
  if (!file.find_bool(causal).value_or(true)) {
    throw_error(Code::CannotRun,
                fmt::format("{}: {} is false: not a text generator", file.path().string(), causal),
                "name a model that generates text");
  }
}

std::vector<std::string> unknown_values(const GgufFile& file, const GgufFamily& family) {
  std::vector<std::string> notes;
  const std::string prefix = fmt::format("{}.", family.name);
  for (const std::string_view key : file.keys()) {
    if (!key.starts_with(prefix)) continue;
    const std::string_view rest = key.substr(prefix.size());
    const bool known = std::find(std::begin(kKnown), std::end(kKnown), rest) != std::end(kKnown);
    const bool foreign = std::any_of(std::begin(kForeign), std::end(kForeign),
                                     [&](const ForeignValue& v) { return v.key == rest; });
    if (!known && !foreign) {
      notes.push_back(fmt::format("value {} is not known and was left out", printable_name(key)));
    }
  }
  return notes;
}

void read_dims(const GgufFile& file, GgufModel& model) {
  const auto key = [&](std::string_view rest) {
    return fmt::format("{}.{}", model.family->name, rest);
  };
  model.layers = file.integer(key("block_count"), 1, 4096);
  model.hidden = file.integer(key("embedding_length"), 1, kMaxWidth);
  model.heads = file.integer(key("attention.head_count"), 1, 4096);
  model.kv_heads = file.find_integer(key("attention.head_count_kv"), 1, 4096).value_or(model.heads);
  model.intermediate = file.integer(key("feed_forward_length"), 1, 1 << 24);
  model.max_position = file.integer(key("context_length"), 1, int64_t{1} << 30);
  if (model.heads % model.kv_heads != 0) {
    file.fail(fmt::format("{} is {}, expected a divisor of {} {}", key("attention.head_count_kv"),
                          model.kv_heads, key("attention.head_count"), model.heads));
  }
  const auto head_dim = file.find_integer(key("attention.key_length"), 2, 4096);
  if (!head_dim && model.hidden % model.heads != 0) {
    file.fail(fmt::format("{} {} is not a multiple of {} {}, and there is no {}",
                          key("embedding_length"), model.hidden, key("attention.head_count"),
                          model.heads, key("attention.key_length")));
  }
  model.head_dim = head_dim.value_or(model.hidden / model.heads);
  for (const std::string_view same : {"attention.value_length", "rope.dimension_count"}) {
    const auto found = file.find_integer(key(same), 1, kMaxWidth);
    if (!found || *found == model.head_dim) continue;
    throw_error(Code::CannotRun,
                fmt::format("{}: {} is {}: only the size of a head, {}, is computed",
                            file.path().string(), key(same), *found, model.head_dim));
  }
  if (model.head_dim % 2 != 0) {
    file.fail(fmt::format("heads of {} elements cannot be rotated in pairs", model.head_dim));
  }
  model.rms_epsilon = gguf_positive(file, key("attention.layer_norm_rms_epsilon"));
  if (model.rms_epsilon >= 1) {
    file.fail(fmt::format("{} is {}, expected a number below 1",
                          key("attention.layer_norm_rms_epsilon"), model.rms_epsilon));
  }
  const std::string base = key("rope.freq_base");
  model.rope_theta = file.has(base) ? gguf_positive(file, base) : 10000;
}

// Extents of a tensor by the numbers of the model.
enum class Extents {
  Hidden,
  Head,
  Q,
  Kv,
  Mlp,
  QByHidden,
  KvByHidden,
  HiddenByQ,
  MlpByHidden,
  HiddenByMlp
};
// When a layer has a tensor.
enum class When { Always, QkvBias, OutputBias, MlpBias, QkNorm };

struct LayerTensor {
  std::string_view gguf;
  std::string_view hugging_face;
  Extents extents;
  When when = When::Always;
};
constexpr LayerTensor kLayerTensors[] = {
    {"attn_norm.weight", "input_layernorm.weight", Extents::Hidden},
    {"attn_q.weight", "self_attn.q_proj.weight", Extents::QByHidden},
    {"attn_q.bias", "self_attn.q_proj.bias", Extents::Q, When::QkvBias},
    {"attn_k.weight", "self_attn.k_proj.weight", Extents::KvByHidden},
    {"attn_k.bias", "self_attn.k_proj.bias", Extents::Kv, When::QkvBias},
    {"attn_v.weight", "self_attn.v_proj.weight", Extents::KvByHidden},
    {"attn_v.bias", "self_attn.v_proj.bias", Extents::Kv, When::QkvBias},
    {"attn_q_norm.weight", "self_attn.q_norm.weight", Extents::Head, When::QkNorm},
    {"attn_k_norm.weight", "self_attn.k_norm.weight", Extents::Head, When::QkNorm},
    {"attn_output.weight", "self_attn.o_proj.weight", Extents::HiddenByQ},
    {"attn_output.bias", "self_attn.o_proj.bias", Extents::Hidden, When::OutputBias},
    {"ffn_norm.weight", "post_attention_layernorm.weight", Extents::Hidden},
    {"ffn_gate.weight", "mlp.gate_proj.weight", Extents::MlpByHidden},
    {"ffn_gate.bias", "mlp.gate_proj.bias", Extents::Mlp, When::MlpBias},
    {"ffn_up.weight", "mlp.up_proj.weight", Extents::MlpByHidden},
    {"ffn_up.bias", "mlp.up_proj.bias", Extents::Mlp, When::MlpBias},
    {"ffn_down.weight", "mlp.down_proj.weight", Extents::HiddenByMlp},
    {"ffn_down.bias", "mlp.down_proj.bias", Extents::Hidden, When::MlpBias},
};

Shape shape_of(Extents extents, const GgufModel& m) {
  const int64_t q = m.heads * m.head_dim;
  const int64_t kv = m.kv_heads * m.head_dim;
  switch (extents) {
    case Extents::Hidden:
      return {m.hidden};
    case Extents::Head:
      return {m.head_dim};
    case Extents::Q:
      return {q};
    case Extents::Kv:
      return {kv};
    case Extents::Mlp:
      return {m.intermediate};
    case Extents::QByHidden:
      return {q, m.hidden};
    case Extents::KvByHidden:
      return {kv, m.hidden};
    case Extents::HiddenByQ:
      return {m.hidden, q};
    case Extents::MlpByHidden:
      return {m.intermediate, m.hidden};
    case Extents::HiddenByMlp:
      return {m.hidden, m.intermediate};
  }
  return {};
}

bool is_there(When when, const GgufModel& model) {
  switch (when) {
    case When::Always:
      return true;
    case When::QkvBias:
      return model.family->always_qkv_bias || model.attention_bias;
    case When::OutputBias:
      return model.attention_bias;
    case When::MlpBias:
      return model.mlp_bias;
    case When::QkNorm:
      return model.family->qk_norm;
  }
  return false;
}

// The tensors of a file by name, crossed off one by one.
class Tensors {
 public:
  explicit Tensors(const GgufFile& file) : file_(file) {
    for (const GgufTensor& tensor : file.tensors()) left_.emplace(tensor.name, &tensor);
  }

  bool has(const std::string& name) const { return left_.contains(name); }

  const GgufTensor& take(const std::string& name, const std::optional<Shape>& shape,
                         std::string_view architecture) {
    const auto it = left_.find(name);
    if (it == left_.end()) {
      file_.fail(fmt::format("has no tensor {}, which every {} has", name, architecture));
    }
    const GgufTensor& tensor = *it->second;
    if (shape && tensor.shape != *shape) {
      file_.fail(fmt::format("tensor {} has the shape {}, expected {}", name,
                             to_string(tensor.shape), to_string(*shape)));
    }
    if (!tensor.type->decode || (tensor.shape.rank() == 1 && tensor.type->block_elements > 1)) {
      throw_error(Code::CannotRun,
                  fmt::format("{}: tensor {} is of type {}, which is not read",
                              file_.path().string(), name, tensor.type->name),
                  fmt::format("types that are read: {}", gguf_decoded_names()));
    }
    left_.erase(it);
    return tensor;
  }

  void drop(const std::string& name) { left_.erase(name); }

  // Throws when a tensor is left: the model would not be the file's without it.
  void finish(std::string_view architecture) const {
    const GgufTensor* first = nullptr;
    for (const GgufTensor& tensor : file_.tensors()) {
      if (first == nullptr && left_.contains(tensor.name)) first = &tensor;
    }
    if (first == nullptr) return;
    throw_error(Code::CannotRun,
                fmt::format("{}: tensor \"{}\" has no place in {} ({} such)", file_.path().string(),
                            printable_name(first->name), architecture, left_.size()),
                "a model of this form cannot be imported");
  }

 private:
  const GgufFile& file_;
  std::unordered_map<std::string_view, const GgufTensor*> left_;
};

int64_t interleaved_heads(const LayerTensor& row, const GgufModel& model) {
  if (!model.family->interleaved) return 0;
  if (row.gguf.starts_with("attn_q.")) return model.heads;
  return row.gguf.starts_with("attn_k.") ? model.kv_heads : 0;
}

void read_tensors(const GgufFile& file, GgufModel& model) {
  const std::string_view architecture = model.family->architecture;
  Tensors tensors(file);
  const GgufTensor& embedding = tensors.take("token_embd.weight", std::nullopt, architecture);
  if (embedding.shape.rank() != 2 || embedding.shape[1] != model.hidden ||
      embedding.shape[0] > (1 << 24)) {
    file.fail(fmt::format("tensor token_embd.weight has the shape {}, expected [vocabulary, {}]",
                          to_string(embedding.shape), model.hidden));
  }
  model.vocab = embedding.shape[0];
  const std::string key = fmt::format("{}.vocab_size", model.family->name);
  const auto vocab = file.find_integer(key, 1, 1 << 24);
  if (vocab && *vocab != model.vocab) {
    file.fail(fmt::format("{} is {}, token_embd.weight has {} rows", key, *vocab, model.vocab));
  }
  model.tied = !tensors.has("output.weight");
  model.attention_bias = !model.family->always_qkv_bias && tensors.has("blk.0.attn_q.bias");
  model.mlp_bias = tensors.has("blk.0.ffn_gate.bias");
  model.tensors.push_back({"model.embed_tokens.weight", &embedding});
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    for (const LayerTensor& row : kLayerTensors) {
      if (!is_there(row.when, model)) continue;
      const GgufTensor& source = tensors.take(fmt::format("blk.{}.{}", layer, row.gguf),
                                              shape_of(row.extents, model), architecture);
      model.tensors.push_back({fmt::format("model.layers.{}.{}", layer, row.hugging_face), &source,
                               interleaved_heads(row, model)});
    }
  }
  const GgufTensor& norm =
      tensors.take("output_norm.weight", shape_of(Extents::Hidden, model), architecture);
  model.tensors.push_back({"model.norm.weight", &norm});
  if (!model.tied) {
    const GgufTensor& head =
        tensors.take("output.weight", Shape{model.vocab, model.hidden}, architecture);
    model.tensors.push_back({"lm_head.weight", &head});
  }
  tensors.drop("rope_freqs.weight");  // becomes rope_scaling
  tensors.finish(architecture);
}

// The shortest decimal number that is `value` in float32: files store 1e-05 as
// 9.99999974737875e-06, and config.json has the former.
double decimal_of_f32(double value) {
  const auto narrow = static_cast<float>(value);
  if (static_cast<double>(narrow) != value) return value;  // a float64
  return std::strtod(fmt::format("{}", narrow).c_str(), nullptr);
}

}  // namespace

double gguf_positive(const GgufFile& file, const std::string& key) {
  const double value = file.number(key);
  if (!(value > 0) || !std::isnormal(static_cast<float>(value))) {
    file.fail(fmt::format("{} is {}, expected a number over 0 that float32 holds", key, value));
  }
  return value;
}

GgufModel read_gguf_model(const GgufFile& file) {
  GgufModel model;
  check_type(file);
  model.family = &family_of(file);
  check_foreign(file, *model.family);
  read_dims(file, model);
  read_tensors(file, model);
  model.notes = unknown_values(file, *model.family);
  return model;
}

Json gguf_config(const GgufFile& file, const GgufModel& model) {
  return {{"architectures", Json::array({model.family->architecture})},
          {"attention_bias", model.attention_bias},
          {"attention_dropout", 0.0},
          {"head_dim", model.head_dim},
          {"hidden_act", "silu"},
          {"hidden_size", model.hidden},
          {"intermediate_size", model.intermediate},
          {"max_position_embeddings", model.max_position},
          {"mlp_bias", model.mlp_bias},
          {"model_type", model.family->model_type},
          {"num_attention_heads", model.heads},
          {"num_hidden_layers", model.layers},
          {"num_key_value_heads", model.kv_heads},
          {"rms_norm_eps", decimal_of_f32(model.rms_epsilon)},
          {"rope_scaling", gguf_rope_scaling(file, model)},
          {"rope_theta", decimal_of_f32(model.rope_theta)},
          {"tie_word_embeddings", model.tied},
          {"torch_dtype", "bfloat16"},
          {"use_cache", true},
          {"vocab_size", model.vocab}};
}

}  // namespace octet
