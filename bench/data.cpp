#include "bench/data.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "num/bf16.h"
#include "num/f8.h"

namespace octet::bench {

uint32_t next_random(uint32_t& state) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

float bell(uint32_t& state) {
  float sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<float>(next_random(state) >> 8) * 0x1p-24F;
  return (sum - 2) * 1.73F;
}

void fill_weights(std::byte* data, int64_t elements, DType dtype) {
  uint32_t random = 12345;
  const int64_t bytes = elements * bytes_of(dtype);
  const int64_t pattern = std::min<int64_t>(bytes, 1 << 20);
  for (int64_t i = 0; i < pattern / bytes_of(dtype); ++i) {
    const float value = bell(random);
    std::byte* at = data + i * bytes_of(dtype);
    if (is_f8(dtype)) {
      *at = std::byte{f32_to_f8(dtype, value * 100)};
    } else if (dtype == DType::F32) {
      std::memcpy(at, &value, sizeof value);
    } else {
      const uint16_t bits = dtype == DType::BF16 ? f32_to_bf16(value) : f32_to_f16(value);
      std::memcpy(at, &bits, sizeof bits);
    }
  }
  for (int64_t i = pattern; i < bytes; i += pattern) {
    std::memcpy(data + i, data, static_cast<size_t>(std::min(pattern, bytes - i)));
  }
}

ScaleTile tile_of(const std::string& word) {
  if (word == "tensor") return ScaleTile::tensor();
  if (word == "row") return ScaleTile::row();
  if (word.starts_with("group")) return ScaleTile::group(std::atoll(word.c_str() + 5));
  if (word.starts_with("block")) {
    const int64_t size = std::atoll(word.c_str() + 5);
    return ScaleTile::block(size, size);
  }
  throw_error(Code::BadInput, fmt::format("--weights {}", word),
              "tensor, row, groupN, blockN, bf16, f16 or f32");
}

std::vector<std::string> words(const std::string& list) {
  std::vector<std::string> result(1);
  for (char c : list) {
    if (c == ',') {
      result.emplace_back();
    } else {
      result.back() += c;
    }
  }
  return result;
}

}  // namespace octet::bench
