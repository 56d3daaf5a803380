// Qwen2 and Qwen2.5: biases on q, k and v; layers from max_window_layers on may have a sliding
// window.
#include <array>

#include "model/config_reader.h"

namespace octet {
namespace {

constexpr std::array<std::string_view, 1> kNames{"Qwen2ForCausalLM"};

ModelConfig read(const nlohmann::json& config) {
  ModelConfig model = read_decoder_config(config, {.max_position = 32768});
  model.qkv_bias = true;
  if (optional_bool(config, "use_sliding_window", false)) {
    const int64_t window = optional_int(config, "sliding_window", 0, 1, int64_t{1} << 30);
    const int64_t first = optional_int(config, "max_window_layers", 28, 0, 1 << 20);
    model.windows = read_windows(config, model.dims.layers, window, first);
  }
  return model;
}

// The text models of Qwen2-VL and Qwen2.5-VL: their three position axes are one for text.
constexpr std::array<std::string_view, 2> kTextTypes{"qwen2_vl_text", "qwen2_5_vl_text"};

constexpr ArchSpec kQwen2{kNames, "qwen2", read, kTextTypes};
OCTET_ARCH(kQwen2);

}  // namespace
}  // namespace octet
