#pragma once
// Rotary position embedding of q and k and the write of k and v into the paged cache: one pass over
// the fresh rows.
#include "num/kv_spec.h"
#include "op/catalog.h"

namespace octet {

// Rotates pairs (i, i + rotary_dim / 2) of every head by the angle of its position ("rotate half",
// as most Hugging Face models store q and k), or, interleaved, pairs (2i, 2i + 1); elements from
// rotary_dim on stay. q is changed in place, k and v go to the cache.
struct Rope {
  static constexpr std::string_view kName = "rope";

  struct Problem {
    int64_t head_dim = 0;
    int64_t rotary_dim = 0;
    DType kv_dtype = DType::BF16;
    bool interleaved = false;
  };

  struct Caps {
    EnumSet<DType> kv_dtypes;
    int64_t rotary_multiple = 2;
    bool interleaved = false;  // takes these pairs too
  };

  struct Args {
    float* q = nullptr;  // [rows, heads, head_dim], rows q_stride elements apart
    int64_t q_stride = 0;
    const float* k = nullptr;  // [rows, kv_heads, head_dim]
    int64_t k_stride = 0;
    const float* v = nullptr;  // [rows, kv_heads, head_dim]
    int64_t v_stride = 0;
    const int32_t* positions = nullptr;  // [rows]
    const float* cos_sin =
        nullptr;  // [positions, rotary_dim]: rotary_dim / 2 cosines, then as many sines
    const int64_t* slots = nullptr;  // [rows] block * block_size + offset in the cache
    void* k_cache = nullptr;         // this layer's [blocks, kv_heads, block_size, head_dim]
    void* v_cache = nullptr;
    DType kv_dtype = DType::BF16;
    int64_t block_size = 0;
    int64_t rows = 0, heads = 0, kv_heads = 0, head_dim = 0, rotary_dim = 0;
    float k_scale = 1, v_scale = 1;  // stored value = value / scale
    bool interleaved = false;
    bool round_bf16 = false;  // round q, k to bf16 after the rotation
  };
};

void judge(const Rope::Caps& caps, const Rope::Problem& problem, std::vector<Refusal>& out);

}  // namespace octet
