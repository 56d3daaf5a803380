#pragma once
// Element types of tensors: one table of facts, names as Octet prints them and as safetensors
// writes them.
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace octet {

enum class DType : uint8_t { F32, F16, BF16, F8E4M3, F8E5M2, F8E8M0, I64, I32, I16, I8, U8, Bool };

struct DTypeInfo {
  std::string_view name;         // as Octet prints it
  std::string_view safetensors;  // as the safetensors header writes it
  int bits;
  double max_finite;
};

namespace detail {
// safetensors names: huggingface/safetensors, "Format". E4M3 here is always E4M3FN (no infinity,
// max 448).
inline constexpr std::array<DTypeInfo, 12> kDTypes{{
    {"f32", "F32", 32, 3.4028234663852886e38},
    {"f16", "F16", 16, 65504.0},
    {"bf16", "BF16", 16, 3.3895313892515355e38},
    {"f8e4m3", "F8_E4M3", 8, 448.0},
    {"f8e5m2", "F8_E5M2", 8, 57344.0},
    {"f8e8m0", "F8_E8M0", 8, 1.7014118346046923e38},
    {"i64", "I64", 64, 9223372036854775807.0},
    {"i32", "I32", 32, 2147483647.0},
    {"i16", "I16", 16, 32767.0},
    {"i8", "I8", 8, 127.0},
    {"u8", "U8", 8, 255.0},
    {"bool", "BOOL", 8, 1.0},
}};
}  // namespace detail

// The facts of one element type. Sizes are in bits.
constexpr const DTypeInfo& info(DType t) {
  return detail::kDTypes[static_cast<size_t>(t)];
}

constexpr std::string_view name(DType t) {
  return info(t).name;
}

// Bytes of one element; every type that Octet reads has whole bytes.
constexpr int64_t bytes_of(DType t) {
  return info(t).bits / 8;
}

constexpr bool is_f8(DType t) {
  return t == DType::F8E4M3 || t == DType::F8E5M2;
}

// The type that a safetensors header names, or nothing if Octet does not know the word.
constexpr std::optional<DType> dtype_from_safetensors(std::string_view word) {
  for (int i = 0; i <= static_cast<int>(DType::Bool); ++i) {
    const auto t = static_cast<DType>(i);
    if (info(t).safetensors == word) return t;
  }
  return std::nullopt;
}

}  // namespace octet
