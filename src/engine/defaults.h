#pragma once
// What a checkpoint's generation_config.json says about sampling and about the end of an answer.
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "engine/request.h"

namespace octet {

struct GenerationDefaults {
  SamplingParams sampling;  // greedy unless do_sample is true
  std::vector<int32_t>
      stop_ids;  // eos_token_id of generation_config.json and of config.json, each once
};

// `generation` may be null (no file). do_sample false or absent means greedy, as transformers
// generates. Throws BadInput naming the field.
GenerationDefaults generation_defaults(const nlohmann::json* generation,
                                       std::span<const int32_t> config_eos);

}  // namespace octet
