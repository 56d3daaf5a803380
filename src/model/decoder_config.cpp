// The fields of config.json that all decoders share.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "model/config_fields.h"

namespace octet {
namespace {

using Json = nlohmann::json;
using config_json::bad_field;
using config_json::find;
using config_json::int_in_range;
using config_json::positive;

std::vector<int32_t> read_eos(const Json& config) {
  const Json* eos = find(config, "eos_token_id");
  if (eos == nullptr) return {};
  std::vector<int32_t> ids;
  const auto add = [&](const Json& id) {
    ids.push_back(static_cast<int32_t>(int_in_range(id, "eos_token_id", 0, INT32_MAX)));
  };
  if (eos->is_array()) {
    std::for_each(eos->begin(), eos->end(), add);
  } else {
    add(*eos);
  }
  return ids;
}

MlpConfig read_mlp(const Json& config, int64_t intermediate) {
  for (const std::string_view key : {"num_experts", "num_local_experts", "n_routed_experts"}) {
    if (find(config, key) == nullptr) continue;
    const int64_t experts = required_int(config, key, 0, 1 << 16);
    if (experts <= 1) continue;
    return ExpertMlp{experts, optional_int(config, "num_experts_per_tok", 1, 1, experts),
                     optional_int(config, "moe_intermediate_size", intermediate, 1, 1 << 24)};
  }
  return DenseMlp{intermediate, optional_bool(config, "mlp_bias", false)};
}

}  // namespace

std::vector<int64_t> read_windows(const Json& config, int64_t layers, int64_t window,
                                  int64_t first) {
  std::vector<int64_t> windows(static_cast<size_t>(layers), 0);
  const Json* types = find(config, "layer_types");
  if (types != nullptr && (!types->is_array() || types->size() != windows.size())) {
    bad_field("layer_types", fmt::format("a list of {} names", layers), types);
  }
  for (size_t i = 0; i < windows.size(); ++i) {
    if (types == nullptr) {
      windows[i] = static_cast<int64_t>(i) >= first ? window : 0;
      continue;
    }
    const Json& type = (*types)[i];
    if (type == "sliding_attention") {
      if (window <= 0)
        bad_field("sliding_window", "a number, for layer_types names sliding_attention",
                  find(config, "sliding_window"));
      windows[i] = window;
    } else if (type != "full_attention") {
      bad_field(fmt::format("layer_types/{}", i), "full_attention or sliding_attention", &type);
    }
  }
  return windows;
}

ModelConfig read_decoder_config(const Json& config, const DecoderDefaults& defaults) {
  constexpr int64_t kMaxWidth = 1 << 20;
  ModelConfig model;
  ModelDims& d = model.dims;
  d.layers = required_int(config, "num_hidden_layers", 1, 4096);
  d.hidden = required_int(config, "hidden_size", 1, kMaxWidth);
  d.heads = required_int(config, "num_attention_heads", 1, 4096);
  d.kv_heads = optional_int(config, "num_key_value_heads", d.heads, 1, 4096);
  if (d.heads % d.kv_heads != 0) {
    bad_field("num_key_value_heads", fmt::format("a divisor of num_attention_heads {}", d.heads),
              find(config, "num_key_value_heads"));
  }
  if (find(config, "head_dim") == nullptr && defaults.head_dim == 0 && d.hidden % d.heads != 0) {
    bad_field("hidden_size",
              fmt::format("a multiple of num_attention_heads {}, or a head_dim", d.heads),
              find(config, "hidden_size"));
  }
  const int64_t head_dim =
      defaults.head_dim != 0 ? defaults.head_dim : std::max<int64_t>(1, d.hidden / d.heads);
  d.head_dim = optional_int(config, "head_dim", head_dim, 2, 4096);
  d.rotary_dim = read_rotary_dim(config, d.head_dim, defaults, model.notes);
  d.intermediate = required_int(config, "intermediate_size", 1, 1 << 24);
  d.vocab = required_int(config, "vocab_size", 1, 1 << 24);
  d.max_position =
      optional_int(config, "max_position_embeddings", defaults.max_position, 1, int64_t{1} << 30);
  model.rms_epsilon = positive(config, "rms_norm_eps", defaults.rms_epsilon);
  // Beside the mean square of a row, which is near 1 or above; published models have 1e-5 or 1e-6.
  if (model.rms_epsilon >= 1)
    bad_field("rms_norm_eps", "a number over 0 and below 1", find(config, "rms_norm_eps"));
  const Json* act = find(config, "hidden_act");
  if (act != nullptr && !act->is_string()) bad_field("hidden_act", "a name", act);
  const std::string word = act == nullptr ? "silu" : act->get<std::string>();
  if (word != "silu" && word != "swish") {
    throw_error(Code::CannotRun,
                fmt::format("config.json: /hidden_act: {} is not computed", act->dump()),
                "known: silu");
  }
  model.rope = read_rope(config, d);
  note_unknown_rope_keys(config, model.notes);
  model.mlp = read_mlp(config, d.intermediate);
  model.tied_embeddings = optional_bool(config, "tie_word_embeddings", false);
  model.windows = std::vector<int64_t>(static_cast<size_t>(d.layers), 0);
  model.eos_ids = read_eos(config);
  return model;
}

}  // namespace octet
