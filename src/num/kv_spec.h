#pragma once
// How keys and values of past tokens are stored.
#include <cstdint>
#include <optional>

#include "num/dtype.h"

namespace octet {

// One layer's cache is two arrays, K and V, each [blocks, kv_heads, block_size, head_dim] of
// `dtype`, row-major. A block holds `block_size` consecutive tokens of one sequence.
struct KvSpec {
  DType dtype = DType::BF16;
  int64_t block_size = 32;  // tokens
  int64_t kv_heads = 0;     // of this rank
  int64_t head_dim = 0;     // elements
  int64_t layers = 0;
  std::optional<float> k_scale;  // stored value * scale = key; none for unscaled types
  std::optional<float> v_scale;

  // Bytes that one token needs over all layers, K and V.
  constexpr int64_t bytes_per_token() const {
    return 2 * layers * kv_heads * head_dim * bytes_of(dtype);
  }
  // Bytes of one block of one layer in one of the two arrays.
  constexpr int64_t block_bytes() const {
    return kv_heads * block_size * head_dim * bytes_of(dtype);
  }

  constexpr bool operator==(const KvSpec&) const = default;
};

}  // namespace octet
