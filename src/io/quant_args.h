#pragma once
// QuantizationArgs of compressed-tensors: one object of numbers and words for weights, inputs or
// the KV cache (neuralmagic/compressed-tensors, quantization/quant_args.py).
#include <string>
#include <vector>

#include "io/json_field.h"
#include "io/quant_config.h"

namespace octet {

// Keys that were not understood, for one note each.
struct UnknownKeys {
  std::vector<std::pair<std::string, std::string>> keys;  // key, path of the object, in file order
  // Adds the members of `object` that are not in `known` and not empty.
  void collect(const JsonField& object, std::span<const std::string_view> known);
  // One line per distinct key.
  std::vector<std::string> notes() const;
};

// How a weight is stored. `microscaling`: the format says MX, whatever scale_dtype is. Throws
// BadInput for anything but 8-bit floats and for words that contradict each other.
QuantSpec parse_weight_args(const JsonField& args, bool microscaling, UnknownKeys& unknown);

struct InputArgs {
  QuantSpec spec;
  bool per_token_for_tensor = false;
};

// How an input is quantised. Throws as above.
InputArgs parse_input_args(const JsonField& args, bool microscaling, UnknownKeys& unknown);

// kv_cache_scheme; nothing (and a reason in `note`) for a type that Octet does not store. Throws as
// above for words that mean nothing.
std::optional<KvQuant> parse_kv_args(const JsonField& args, UnknownKeys& unknown,
                                     std::string& note);

}  // namespace octet
