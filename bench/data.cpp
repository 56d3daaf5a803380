#include "bench/data.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>

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

void fill_inputs(std::byte* data, int64_t elements, DType dtype) {
  uint32_t random = 99;
  for (int64_t i = 0; i < elements; ++i) {
    const float value = bell(random);
    std::byte* at = data + i * bytes_of(dtype);
    const uint16_t bits = f32_to_bf16(value);
    if (is_f8(dtype)) *at = std::byte{f32_to_f8(dtype, value * 100)};
    if (dtype == DType::BF16) std::memcpy(at, &bits, sizeof bits);
    if (dtype == DType::F32) std::memcpy(at, &value, sizeof value);
  }
}

void read_flags(int argc, char** argv, const std::vector<BenchFlag>& flags) {
  std::string names;
  for (const BenchFlag& flag : flags)
    names += fmt::format("{}{}", names.empty() ? "" : " ", flag.name);
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    const auto flag = std::find_if(flags.begin(), flags.end(),
                                   [&](const BenchFlag& f) { return f.name == name; });
    if (flag == flags.end())
      throw_error(Code::BadInput, fmt::format("unknown flag \"{}\"", name), names);
    if (i + 1 == argc) throw_error(Code::BadInput, fmt::format("{} takes a value", name), names);
    const std::string_view value = argv[i + 1];
    if (auto* const* text = std::get_if<std::string*>(&flag->place)) {
      **text = value;
      continue;
    }
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < 0 ||
        number > INT32_MAX)
      throw_error(Code::BadInput, fmt::format("{} {}: expected a number", name, value), names);
    if (auto* const* wide = std::get_if<int64_t*>(&flag->place)) **wide = number;
    if (auto* const* narrow = std::get_if<int*>(&flag->place)) **narrow = static_cast<int>(number);
  }
}

}  // namespace octet::bench
