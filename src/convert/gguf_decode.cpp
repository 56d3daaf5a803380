#include "convert/gguf_decode.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "num/bf16.h"

namespace octet {
namespace {

constexpr size_t kBlock = 32;         // elements of a quantised block
constexpr size_t kHalf = kBlock / 2;  // bytes of its nibbles

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

float load_f16(const std::byte* at) {
  return f16_to_f32(load<uint16_t>(at));
}

// `value` of each code, low nibbles first.
template <class Value>
void decode_nibbles(const std::byte* codes, uint16_t* out, const Value& value) {
  for (size_t i = 0; i < kHalf; ++i) {
    const int byte = std::to_integer<int>(codes[i]);
    out[i] = f32_to_bf16(value(byte & 15));
    out[i + kHalf] = f32_to_bf16(value(byte >> 4));
  }
}

template <size_t kBytes, class Decode>
void each_block(std::span<const std::byte> blocks, std::span<uint16_t> out, const Decode& decode) {
  OCTET_CHECK(out.size() % kBlock == 0 && blocks.size() == out.size() / kBlock * kBytes,
              "{} bytes for {} elements", blocks.size(), out.size());
  for (size_t i = 0; i < out.size() / kBlock; ++i) {
    decode(blocks.data() + i * kBytes, out.data() + i * kBlock);
  }
}

template <class T, class Convert>
void each_element(std::span<const std::byte> data, std::span<uint16_t> out,
                  const Convert& convert) {
  OCTET_CHECK(data.size() == out.size() * sizeof(T), "{} bytes for {} elements", data.size(),
              out.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = convert(load<T>(data.data() + i * sizeof(T)));
}

}  // namespace

size_t decode_blocks(GgufDecode type, std::span<const std::byte> blocks, std::span<uint16_t> out) {
  switch (type) {
    case GgufDecode::F32:
      each_element<float>(blocks, out, [](float x) { return f32_to_bf16(x); });
      break;
    case GgufDecode::F16:
      each_element<uint16_t>(blocks, out,
                             [](uint16_t bits) { return f32_to_bf16(f16_to_f32(bits)); });
      break;
    case GgufDecode::BF16:
      each_element<uint16_t>(blocks, out, [](uint16_t bits) { return bits; });
      break;
    case GgufDecode::Q4_0:
      each_block<2 + kHalf>(blocks, out, [](const std::byte* block, uint16_t* values) {
        const float scale = load_f16(block);
        decode_nibbles(block + 2, values, [&](int q) { return scale * static_cast<float>(q - 8); });
      });
      break;
    case GgufDecode::Q4_1:
      each_block<4 + kHalf>(blocks, out, [](const std::byte* block, uint16_t* values) {
        const float scale = load_f16(block);
        const float offset = load_f16(block + 2);
        // The product is exact in float32 (11 bits times 4); the sum is rounded, as in ggml.
        decode_nibbles(block + 4, values,
                       [&](int q) { return scale * static_cast<float>(q) + offset; });
      });
      break;
    case GgufDecode::Q8_0:
      each_block<2 + kBlock>(blocks, out, [](const std::byte* block, uint16_t* values) {
        const float scale = load_f16(block);
        for (size_t i = 0; i < kBlock; ++i) {
          values[i] = f32_to_bf16(scale * static_cast<float>(load<int8_t>(block + 2 + i)));
        }
      });
      break;
  }
  constexpr uint16_t kExponent = 0x7F80;
  const auto bad = std::find_if(out.begin(), out.end(),
                                [](uint16_t bits) { return (bits & kExponent) == kExponent; });
  return static_cast<size_t>(bad - out.begin());
}

}  // namespace octet
