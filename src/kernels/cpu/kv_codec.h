#pragma once
// Scalar access to elements of the KV cache, and where a token of it lies. Baseline code: included
// by kernels outside their ISA regions.
#include <cstdint>
#include <type_traits>

#include "num/bf16.h"
#include "num/f8.h"

namespace octet::cpu {

// Element type of a cache of dtype kType as it lies in memory.
template <DType kType>
using KvElement = std::conditional_t<kType == DType::F32, float,
                                     std::conditional_t<bytes_of(kType) == 2, uint16_t, uint8_t>>;

template <DType kType>
float kv_decode(KvElement<kType> stored) {
  if constexpr (kType == DType::F32) return stored;
  if constexpr (kType == DType::F16) return f16_to_f32(stored);
  if constexpr (kType == DType::BF16) return bf16_to_f32(stored);
  if constexpr (kType == DType::F8E4M3) return f8e4m3_to_f32(stored);
  if constexpr (kType == DType::F8E5M2) return f8e5m2_to_f32(stored);
}

template <DType kType>
KvElement<kType> kv_encode(float value) {
  if constexpr (kType == DType::F32) return value;
  if constexpr (kType == DType::F16) return f32_to_f16(value);
  if constexpr (kType == DType::BF16) return f32_to_bf16(value);
  if constexpr (kType == DType::F8E4M3) return f32_to_f8e4m3(value);
  if constexpr (kType == DType::F8E5M2) return f32_to_f8e5m2(value);
}

// Calls f(std::integral_constant<DType, t>) for the KV dtype `dtype`; the kernels' caps admit no
// other.
template <class F>
void with_kv_dtype(DType dtype, F f) {
  switch (dtype) {
    case DType::F32:
      return f(std::integral_constant<DType, DType::F32>{});
    case DType::F16:
      return f(std::integral_constant<DType, DType::F16>{});
    case DType::BF16:
      return f(std::integral_constant<DType, DType::BF16>{});
    case DType::F8E4M3:
      return f(std::integral_constant<DType, DType::F8E4M3>{});
    case DType::F8E5M2:
      return f(std::integral_constant<DType, DType::F8E5M2>{});
    case DType::F8E8M0:
    case DType::I64:
    case DType::I32:
    case DType::I16:
    case DType::I8:
    case DType::U8:
    case DType::Bool:
      return;
  }
}

// First element of a token's head in one layer's [blocks, kv_heads, block_size, head_dim].
constexpr int64_t kv_offset(int64_t slot, int64_t head, int64_t block_size, int64_t kv_heads,
                            int64_t head_dim) {
  return ((slot / block_size * kv_heads + head) * block_size + slot % block_size) * head_dim;
}

}  // namespace octet::cpu
