// Qwen3: every head of q and k is normalised before the rotation; biases only where attention_bias
// says so.
#include <array>

#include "model/config_reader.h"

namespace octet {
namespace {

constexpr std::array<std::string_view, 1> kNames{"Qwen3ForCausalLM"};

ModelConfig read(const nlohmann::json& config) {
  ModelConfig model = read_decoder_config(config, {.max_position = 32768, .head_dim = 128});
  model.qk_norm = QkNorm::PerHead;
  model.qkv_bias = model.output_bias = optional_bool(config, "attention_bias", false);
  if (optional_bool(config, "use_sliding_window", false)) {
    const int64_t window = optional_int(config, "sliding_window", 0, 1, int64_t{1} << 30);
    const int64_t first = optional_int(config, "max_window_layers", 28, 0, 1 << 20);
    model.windows = read_windows(config, model.dims.layers, window, first);
  }
  return model;
}

// The text model of Qwen3-VL: its three position axes are one for text.
constexpr std::array<std::string_view, 1> kTextTypes{"qwen3_vl_text"};

constexpr ArchSpec kQwen3{kNames, "qwen3", read, kTextTypes};
OCTET_ARCH(kQwen3);

}  // namespace
}  // namespace octet
