#pragma once
// A decoder's configuration, typed and validated, and the architectures that can make one from
// config.json.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "num/model_dims.h"

namespace octet {

// Scaling of rotary frequencies; formulas in model/rope_angles.h.
enum class RopeKind : uint8_t { Default, Linear, Dynamic, Llama3, Yarn, LongRope };

struct RopeConfig {
  RopeKind kind = RopeKind::Default;
  double theta = 10000;
  double factor = 1;
  double low_freq_factor = 1;        // Llama3
  double high_freq_factor = 4;       // Llama3
  double original_max_position = 0;  // Dynamic, Llama3, Yarn, LongRope
  double beta_fast = 32;             // Yarn
  double beta_slow = 1;              // Yarn
  double attention_factor = 1;       // multiplies cos and sin; Yarn and LongRope change it
  bool truncate = true;              // Yarn: whole-numbered correction range
  std::vector<double> short_factor;  // LongRope: divisors of the pairs' frequencies up to the
  std::vector<double> long_factor;   // original length, and above it
};

// The MLP of a layer.
struct DenseMlp {
  int64_t intermediate = 0;
  bool bias = false;
};
struct ExpertMlp {
  int64_t experts = 0;
  int64_t experts_per_token = 0;
  int64_t intermediate = 0;
};
using MlpConfig = std::variant<DenseMlp, ExpertMlp>;

// The RMSNorms of a layer as checkpoints name them; an empty name: there is none at that place.
// Those after attention and MLP are applied before the result joins the residual.
struct LayerNorms {
  std::string_view before_attention = "input_layernorm";
  std::string_view after_attention;
  std::string_view before_mlp = "post_attention_layernorm";
  std::string_view after_mlp;
};

// RMSNorm of q and k before the rotation: of every head alone, or of all heads of a row together.
enum class QkNorm : uint8_t { None, PerHead, AllHeads };

// How the files name and join what the model needs.
struct StoredNames {
  std::string prefix = "model.";  // of the embedding, the layers and the last norm
  std::string head = "lm_head";
  bool fused_qkv = false;      // self_attn.qkv_proj: rows of q, then k, then v
  bool fused_gate_up = false;  // mlp.gate_up_proj: rows of gate, then up
};

struct ModelConfig {
  std::string architecture;  // as config.json names it: "LlamaForCausalLM"
  std::string wrapper;       // the model around this text model, or empty
  StoredNames stored;
  ModelDims dims;
  RopeConfig rope;
  MlpConfig mlp;
  double rms_epsilon = 1e-6;
  bool qkv_bias = false;
  bool output_bias = false;  // of o_proj
  QkNorm qk_norm = QkNorm::None;
  LayerNorms norms;
  bool interleaved_rope = false;  // pairs (2i, 2i + 1) are rotated, not (i, i + half)
  bool tied_embeddings = false;
  std::vector<int64_t> windows;    // per layer: tokens a row sees, itself included; 0: all
  std::vector<int32_t> eos_ids;    // of config.json
  std::vector<std::string> notes;  // fields that would change the answer and are not read
};

// One family of models: the names config.json uses and how its fields are read.
struct ArchSpec {
  std::span<const std::string_view> hf_names;         // entries of "architectures"
  std::string_view model_type;                        // what "model_type" of such a config says
  ModelConfig (*read_config)(const nlohmann::json&);  // throws BadInput naming the field
  // Values of text_config.model_type beside model_type whose text model is this one.
  std::span<const std::string_view> text_types = {};
};

// Every architecture linked into this program.
std::span<const ArchSpec* const> architectures();

// All names that "architectures" may hold, sorted.
std::vector<std::string_view> architecture_names();

// The typed configuration of a config.json. One with a text_config describes a wrapper (of images,
// sound): the result is its text model's. Throws CannotRun for an unknown architecture, naming
// those that are known, and BadInput for a missing or absurd field, and for a model_type of another
// architecture: transformers would go by that. An absent model_type is no contradiction.
ModelConfig read_config(const nlohmann::json& config);

namespace detail {
struct RegisterArch {
  explicit RegisterArch(const ArchSpec& spec);
};
}  // namespace detail

}  // namespace octet

#define OCTET_ARCH(spec)                                             \
  static const ::octet::detail::RegisterArch octet_register_##spec { \
    spec                                                             \
  }
