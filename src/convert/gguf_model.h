#pragma once
// What a GGUF file says of its model: the family, the numbers of config.json, the tensors.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "io/gguf.h"

namespace octet {

// One value of general.architecture and the Hugging Face architecture that it becomes.
struct GgufFamily {
  std::string_view name;          // "llama"
  std::string_view architecture;  // "LlamaForCausalLM"
  std::string_view model_type;    // of config.json
  // Whether q and k rows lie with the two halves of each head interleaved (llama.cpp's rope of
  // neighbours) and must be put apart again.
  bool interleaved = false;
  bool always_qkv_bias = false;
  bool qk_norm = false;
};

// One tensor of the checkpoint to be written and where its values come from.
struct ImportTensor {
  std::string name;  // as Hugging Face calls it
  const GgufTensor* source = nullptr;
  int64_t interleaved_heads = 0;  // over 0: rows are interleaved within each of so many heads
};

// The model of a file. Views live as long as the file.
struct GgufModel {
  const GgufFamily* family = nullptr;
  int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, intermediate = 0;
  int64_t vocab = 0, max_position = 0;
  double rms_epsilon = 0, rope_theta = 0;
  bool tied = false, attention_bias = false, mlp_bias = false;
  std::vector<ImportTensor> tensors;  // every one of the model, in the order of the graph
  std::vector<std::string> notes;     // values of the file that have no place, one line each
};

// Reads and checks all of it: every tensor that the architecture has must be there with its shape
// and a type that is read, and none may be over. Throws BadInput naming file and key or tensor;
// CannotRun for an architecture that is not known or computes what Octet does not.
GgufModel read_gguf_model(const GgufFile& file);

// A value that must be there and be a number over 0 that float32 holds without loss of digits.
// Throws BadInput naming it.
double gguf_positive(const GgufFile& file, const std::string& key);

// "rope_scaling" of config.json: null, or an object of llama3, linear or yarn. Llama 3.1's is not
// in the values but in a tensor of factors, from which it is derived and then proven equal. Throws
// CannotRun for what is none of these.
nlohmann::json gguf_rope_scaling(const GgufFile& file, const GgufModel& model);

// config.json of a bf16 checkpoint, without the ids of special tokens.
nlohmann::json gguf_config(const GgufFile& file, const GgufModel& model);

}  // namespace octet
