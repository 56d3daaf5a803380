#pragma once
// Types of the tensors in GGUF files: how many bytes a block of elements takes.
// Format: ggml, ggml.h "enum ggml_type" and ggml-common.h (block_q4_0 and so on).
#include <cstdint>
#include <optional>
#include <string_view>

namespace octet {

// The types whose values Octet computes.
enum class GgufDecode : uint8_t { F32, F16, BF16, Q4_0, Q4_1, Q8_0 };

// One row: a number as files hold it, its name, and its block.
struct GgufTensorType {
  uint32_t id;
  std::string_view name;
  uint32_t block_elements;
  uint32_t block_bytes;
  std::optional<GgufDecode> decode = {};  // nothing: known, so that sizes can be checked, not read
};

// The type of that number; null when it is not known.
const GgufTensorType* gguf_tensor_type(uint32_t id);

// "F32, F16, BF16, Q4_0, Q4_1, Q8_0": those with `decode`.
std::string_view gguf_decoded_names();

}  // namespace octet
