#pragma once
// The quantisation words of a checkpoint: which layers are stored in 8 bits, and how.
// Dialects: compressed-tensors (neuralmagic/compressed-tensors, quantization/quant_config.py and
// quant_args.py) and fp8 (vLLM's and transformers' block and per-tensor FP8).
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "num/quant_spec.h"

namespace octet {

// How a checkpoint wants its KV cache stored.
struct KvQuant {
  DType dtype = DType::F8E4M3;
  ScaleTile tile{};  // tensor, or row: one scale per head
  ScaleTiming timing = ScaleTiming::Static;

  constexpr bool operator==(const KvQuant&) const = default;
};

// What the config says about one module; `rule` names the entry that decided, for messages.
struct QuantMatch {
  enum class Says : uint8_t {
    Quantised,  // a target names it
    Plain,      // an ignore entry names it, or no target does
    AsStored,   // published readers disagree: the stored dtype decides
  };
  Says says = Says::Plain;
  std::optional<LayerQuant> quant;  // set for Quantised and AsStored
  bool tensor_or_row = false;       // fp8 without blocks: one scale, or one per row, by the file
  std::string rule;  // "config_groups.group_0 target \"Linear\"", "ignore \"lm_head\""
};

// A parsed quantization_config; immutable, cheap to copy. The default says that nothing is
// quantised.
class QuantConfig {
 public:
  QuantConfig();
  // From a whole config.json: quantization_config, text_config.quantization_config or
  // compression_config. Throws BadInput with the JSON path of the field, the value and what is
  // supported.
  static QuantConfig parse(const nlohmann::json& config);

  bool quantised() const;
  // For display: "compressed-tensors", "fp8", or "none"; the format "float-quantized" or "".
  std::string_view method() const;
  std::string_view format() const;

  // How the config wants `module` ("model.layers.0.self_attn.q_proj") stored; nothing: it stays as
  // it is. An exact name wins over a regular expression, that over a class; ignore wins over all.
  // The name is the module's own: entries that name a fused module (qkv_proj, gate_up_proj) count
  // for its parts. The weight dtype and scale dtypes of the answer are those of the dialect; what
  // is stored may differ (linear_record). Throws BadInput when an expression exceeds its match
  // limit.
  std::optional<LayerQuant> match(std::string_view module,
                                  std::string_view class_name = "Linear") const;
  // The same with its reason and with the cases where published readers disagree: an fp8 exclusion
  // that only transformers' prefix rule matches, lm_head under fp8, an ignore entry with one more
  // component than the module.
  QuantMatch explain(std::string_view module, std::string_view class_name = "Linear") const;

  const std::optional<KvQuant>& kv_cache() const;
  // Lines to print once: keys that were not understood, groups that have no effect.
  std::span<const std::string> notes() const;

  struct Impl;

 private:
  explicit QuantConfig(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace octet
