// Phi-3, Phi-3.5 and Phi-4 (mini): q, k and v in one stored matrix, gate and up in another;
// LongRoPE.
#include <array>

#include "model/config_reader.h"

namespace octet {
namespace {

constexpr std::array<std::string_view, 1> kNames{"Phi3ForCausalLM"};

ModelConfig read(const nlohmann::json& config) {
  ModelConfig model = read_decoder_config(
      config, {.rms_epsilon = 1e-5, .max_position = 4096, .rotates_part = true});
  model.stored.fused_qkv = model.stored.fused_gate_up = true;
  const int64_t window = optional_int(config, "sliding_window", 0, 1, int64_t{1} << 30);
  model.windows = read_windows(config, model.dims.layers, window, 0);
  return model;
}

constexpr ArchSpec kPhi3{kNames, "phi3", read};
OCTET_ARCH(kPhi3);

}  // namespace
}  // namespace octet
