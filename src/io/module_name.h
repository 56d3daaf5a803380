#pragma once
// Dotted module names: wrappers in front, components, fused relatives.
#include <optional>
#include <string>
#include <string_view>

namespace octet {

// "down_proj" of "model.layers.1.mlp.down_proj".
std::string_view last_component(std::string_view name);

// `name` without the wrapper components that writers put in front or leave out ("model",
// "language_model", "text_model"); `name` itself when fewer than two components would remain, since
// one component alone ("lm_head") says nothing about which wrapper was meant.
std::string_view without_wrappers(std::string_view name);

// The name under which engines fuse this module with its neighbours: "...qkv_proj" of "...q_proj",
// "...gate_up_proj" of "...up_proj"; nothing for other modules.
std::optional<std::string> fused_name(std::string_view name);

}  // namespace octet
