// Llama 3, 3.1 to 3.3 and models of the same form (SmolLM2): no norms of heads, optional biases
// everywhere.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/config_reader.h"

namespace octet {
namespace {

constexpr std::array<std::string_view, 1> kNames{"LlamaForCausalLM"};

ModelConfig read(const nlohmann::json& config) {
  ModelConfig model = read_decoder_config(config);
  for (const char* key : {"sliding_window", "layer_types"}) {
    const auto it = config.find(key);
    if (it == config.end() || it->is_null()) continue;
    if (it->is_array() && std::find(it->begin(), it->end(), "sliding_attention") == it->end())
      continue;
    model.notes.push_back(
        fmt::format("config.json: /{} has no effect: LlamaForCausalLM has no sliding window", key));
  }
  model.qkv_bias = model.output_bias = optional_bool(config, "attention_bias", false);
  return model;
}

constexpr ArchSpec kLlama{kNames, "llama", read};
OCTET_ARCH(kLlama);

}  // namespace
}  // namespace octet
