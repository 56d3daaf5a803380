#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "testing/tiny_checkpoint.h"

namespace octet {
namespace {

std::string_view torch_name(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return "float32";
    case DType::F16:
      return "float16";
    case DType::BF16:
      return "bfloat16";
    default:
      break;
  }
  throw_error(Code::Bug, fmt::format("{} is no dtype of a model", name(dtype)));
}

nlohmann::json config_of(const TinyModel& model) {
  return {{"architectures", {model.architecture}},
          {"model_type", model.model_type},
          {"hidden_size", model.hidden},
          {"intermediate_size", model.intermediate},
          {"num_hidden_layers", model.layers},
          {"num_attention_heads", model.heads},
          {"num_key_value_heads", model.kv_heads},
          {"head_dim", model.head_dim},
          {"vocab_size", model.vocab},
          {"max_position_embeddings", model.max_positions},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 10000.0},
          {"hidden_act", "silu"},
          {"tie_word_embeddings", model.tied},
          {"attention_bias", model.qkv_bias && model.model_type == "llama"},
          {"bos_token_id", 1},
          {"eos_token_id", 2},
          {"torch_dtype", torch_name(model.dtype)}};
}

}  // namespace

TinyModel small_tiny_model(LayerQuant quant, int64_t vocab, int64_t max_positions) {
  TinyModel model;
  model.hidden = 64;
  model.intermediate = 96;
  model.heads = 4;
  model.kv_heads = 2;
  model.head_dim = 16;
  model.vocab = vocab;
  model.max_positions = max_positions;
  model.quant = quant;
  return model;
}

TinyCheckpoint tiny_model(const TinyModel& model) {
  TinyCheckpoint checkpoint(model.seed);
  checkpoint.config() = config_of(model);
  const auto linear = [&](const std::string& module, int64_t n, int64_t k, bool bias = false) {
    const auto override = model.quant_of ? model.quant_of(module) : std::nullopt;
    checkpoint.add_linear(module, n, k, override.value_or(model.quant), bias);
  };
  const auto norm = [&](const std::string& name, int64_t width) {
    checkpoint.add_normal(name, model.dtype, Shape{width}, 0.1F, 1.0F);
  };
  checkpoint.add_normal("model.embed_tokens.weight", model.dtype, {model.vocab, model.hidden}, 1);
  for (int64_t i = 0; i < model.layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    const std::string attention = layer + "self_attn.";
    norm(layer + "input_layernorm.weight", model.hidden);
    linear(attention + "q_proj", model.heads * model.head_dim, model.hidden, model.qkv_bias);
    linear(attention + "k_proj", model.kv_heads * model.head_dim, model.hidden, model.qkv_bias);
    linear(attention + "v_proj", model.kv_heads * model.head_dim, model.hidden, model.qkv_bias);
    // Llama's attention_bias gives the output projection one too; Qwen2's does not.
    linear(attention + "o_proj", model.hidden, model.heads * model.head_dim,
           model.qkv_bias && model.model_type == "llama");
    if (model.qk_norm) {
      norm(attention + "q_norm.weight", model.head_dim);
      norm(attention + "k_norm.weight", model.head_dim);
    }
    norm(layer + "post_attention_layernorm.weight", model.hidden);
    linear(layer + "mlp.gate_proj", model.intermediate, model.hidden);
    linear(layer + "mlp.up_proj", model.intermediate, model.hidden);
    linear(layer + "mlp.down_proj", model.hidden, model.intermediate);
  }
  norm("model.norm.weight", model.hidden);
  if (!model.tied) {
    const auto head = model.quant_of ? model.quant_of("lm_head") : std::nullopt;
    checkpoint.add_linear("lm_head", model.vocab, model.hidden,
                          head.value_or(tiny_plain(model.dtype)));
  }
  checkpoint.quantise_config(model.dialect);
  return checkpoint;
}

}  // namespace octet
