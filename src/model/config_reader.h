#pragma once
// Reading fields of config.json with checks; shared by the architectures.
#include <nlohmann/json.hpp>
#include <string_view>

#include "model/config.h"

namespace octet {

// Field `key` of config.json; each throws BadInput "config.json: /key: expected ..., got ..." when
// it is missing, of another type, or out of range. A null value counts as missing.
int64_t required_int(const nlohmann::json& config, std::string_view key, int64_t min, int64_t max);
int64_t optional_int(const nlohmann::json& config, std::string_view key, int64_t fallback,
                     int64_t min, int64_t max);
double optional_number(const nlohmann::json& config, std::string_view key, double fallback);
bool optional_bool(const nlohmann::json& config, std::string_view key, bool fallback);

// What an architecture takes where config.json is silent.
struct DecoderDefaults {
  double rms_epsilon = 1e-6;
  int64_t max_position = 2048;
  int64_t head_dim = 0;       // 0: hidden_size / num_attention_heads
  bool rotates_part = false;  // partial_rotary_factor has an effect
  double rotary_factor = 1;   // part of a head that is rotated
};

// The fields that every architecture of the decoder graph shares: sizes, norm, rope, MLP, tying,
// end tokens. Checks that hidden_act is SiLU.
ModelConfig read_decoder_config(const nlohmann::json& config, const DecoderDefaults& defaults = {});

// rope_theta and rope_scaling at the top level, or rope_parameters (transformers 5). Throws
// CannotRun for a kind that is not known and for parameters that differ by layer type, BadInput for
// numbers that are out of range or make a frequency zero, infinite or not a number.
RopeConfig read_rope(const nlohmann::json& config, const ModelDims& dims);

// Elements of a head that are rotated: an even number from 2 to head_dim. transformers' models of
// most families rotate all of it whatever partial_rotary_factor says; one without effect is noted.
int64_t read_rotary_dim(const nlohmann::json& config, int64_t head_dim,
                        const DecoderDefaults& defaults, std::vector<std::string>& notes);

// Notes keys of rope_scaling or rope_parameters that nothing understands: a misspelt one would
// leave its default in force without a word.
void note_unknown_rope_keys(const nlohmann::json& config, std::vector<std::string>& notes);

// The window of every layer: `layer_types` if given, else `window` for layers from `first` on.
std::vector<int64_t> read_windows(const nlohmann::json& config, int64_t layers, int64_t window,
                                  int64_t first);

}  // namespace octet
