#pragma once
// The sizes of a decoder that operations and plans need.
#include <cstdint>

namespace octet {

// Counts are of one rank: with R ranks heads, kv_heads, intermediate and vocab are this rank's
// share.
struct ModelDims {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t rotary_dim = 0;
  int64_t intermediate = 0;
  int64_t vocab = 0;         // rows of the head on this rank
  int64_t max_position = 0;  // tokens the model was made for

  constexpr bool operator==(const ModelDims&) const = default;
};

}  // namespace octet
