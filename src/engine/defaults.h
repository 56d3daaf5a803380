#pragma once
// What a checkpoint's generation_config.json says about sampling and about the end of an answer.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/request.h"

namespace octet {

struct GenerationDefaults {
  SamplingParams sampling;  // greedy unless do_sample is true
  std::vector<int32_t>
      stop_ids;  // eos_token_id of generation_config.json and of config.json, each once
  std::optional<int64_t> max_tokens;  // max_new_tokens
  std::vector<std::string> notes;     // ids that are no stop_ids, fields without effect; for people
};

// `generation` may be null (no file). do_sample false or absent means greedy, as transformers
// generates: temperature, top_p, top_k and min_p are then checked and not used; repetition_penalty
// counts in both. Ids from `vocab` on are left out with a note. Throws BadInput naming the file and
// the field for a value of another type or out of range.
GenerationDefaults generation_defaults(const nlohmann::json* generation,
                                       std::span<const int32_t> config_eos, int64_t vocab);

}  // namespace octet
