// GLM-4: norms before and after attention and MLP, half of every head rotated in neighbouring
// pairs, gate and up in one stored matrix.
#include <array>

#include "model/config_reader.h"

namespace octet {
namespace {

constexpr std::array<std::string_view, 1> kNames{"Glm4ForCausalLM"};

ModelConfig read(const nlohmann::json& config) {
  ModelConfig model = read_decoder_config(config, {.rms_epsilon = 1.5625e-7,
                                                   .max_position = 131072,
                                                   .head_dim = 128,
                                                   .rotates_part = true,
                                                   .rotary_factor = 0.5});
  model.norms = {.before_attention = "input_layernorm",
                 .after_attention = "post_self_attn_layernorm",
                 .before_mlp = "post_attention_layernorm",
                 .after_mlp = "post_mlp_layernorm"};
  model.interleaved_rope = true;
  model.stored.fused_gate_up = true;
  model.qkv_bias = optional_bool(config, "attention_bias", true);
  return model;
}

constexpr ArchSpec kGlm4{kNames, "glm4", read};
OCTET_ARCH(kGlm4);

}  // namespace
}  // namespace octet
