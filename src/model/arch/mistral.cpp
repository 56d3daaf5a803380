// Mistral: Llama's form with a sliding window over all layers, or none when sliding_window is null.
#include <array>

#include "model/config_reader.h"

namespace octet {
namespace {

constexpr std::array<std::string_view, 1> kNames{"MistralForCausalLM"};

ModelConfig read(const nlohmann::json& config) {
  ModelConfig model = read_decoder_config(config, {.max_position = 131072});
  const int64_t window = optional_int(config, "sliding_window", 0, 1, int64_t{1} << 30);
  model.windows = read_windows(config, model.dims.layers, window, 0);
  return model;
}

constexpr ArchSpec kMistral{kNames, "mistral", read};
OCTET_ARCH(kMistral);

}  // namespace
}  // namespace octet
