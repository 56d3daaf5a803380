// OLMo 2: norms after attention and MLP instead of before, and one norm over all heads of q and of
// k.
#include <array>

#include "model/config_reader.h"

namespace octet {
namespace {

constexpr std::array<std::string_view, 1> kNames{"Olmo2ForCausalLM"};

ModelConfig read(const nlohmann::json& config) {
  ModelConfig model = read_decoder_config(config, {.rms_epsilon = 1e-5});
  model.norms = {.before_attention = "",
                 .after_attention = "post_attention_layernorm",
                 .before_mlp = "",
                 .after_mlp = "post_feedforward_layernorm"};
  model.qk_norm = QkNorm::AllHeads;
  model.qkv_bias = model.output_bias = optional_bool(config, "attention_bias", false);
  return model;
}

constexpr ArchSpec kOlmo2{kNames, "olmo2", read};
OCTET_ARCH(kOlmo2);

}  // namespace
}  // namespace octet
