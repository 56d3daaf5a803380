#include "convert/gguf_decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "num/bf16.h"

namespace octet {
namespace {

template <class T>
void append(std::vector<std::byte>& bytes, T value) {
  const size_t at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

std::vector<float> decode(GgufDecode type, const std::vector<std::byte>& bytes, size_t elements) {
  std::vector<uint16_t> out(elements);
  EXPECT_EQ(decode_blocks(type, bytes, out), elements);
  std::vector<float> values;
  for (const uint16_t bits : out) values.push_back(bf16_to_f32(bits));
  return values;
}

// A block with the codes 0 to 15 in its low nibbles and 15 to 0 in its high ones.
void append_nibbles(std::vector<std::byte>& bytes) {
  for (int i = 0; i < 16; ++i) append(bytes, static_cast<uint8_t>(i | (15 - i) << 4));
}

TEST(GgufDecode, F32RoundsOnceToNearestEven) {
  std::vector<std::byte> bytes;
  const std::vector<float> values{1.0F, 1.00390625F, 1.01171875F, -3.14159274F, 0.0F};
  for (const float value : values) append(bytes, value);
  const std::vector<float> out = decode(GgufDecode::F32, bytes, values.size());
  EXPECT_EQ(out[1], 1.0F);       // a tie, to the even code
  EXPECT_EQ(out[2], 1.015625F);  // a tie, to the even code
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(out[i], round_to_bf16(values[i]));
}

TEST(GgufDecode, F16TakesEveryFiniteCode) {
  std::vector<std::byte> bytes;
  std::vector<float> expected;
  for (uint32_t code = 0; code < 0x10000; ++code) {
    if ((code & 0x7C00) == 0x7C00) continue;
    append(bytes, static_cast<uint16_t>(code));
    expected.push_back(round_to_bf16(f16_to_f32(static_cast<uint16_t>(code))));
  }
  EXPECT_EQ(decode(GgufDecode::F16, bytes, expected.size()), expected);
}

TEST(GgufDecode, Bf16IsCopied) {
  std::vector<std::byte> bytes;
  for (const uint16_t bits : {0x3F80, 0x8000, 0x0001}) append(bytes, bits);
  std::vector<uint16_t> out(3);
  EXPECT_EQ(decode_blocks(GgufDecode::BF16, bytes, out), 3U);
  EXPECT_THAT(out, testing::ElementsAre(0x3F80, 0x8000, 0x0001));
}

TEST(GgufDecode, Q40HasLowNibblesFirstAndAZeroOf8) {
  std::vector<std::byte> bytes;
  append(bytes, f32_to_f16(0.5F));
  append_nibbles(bytes);
  const std::vector<float> out = decode(GgufDecode::Q4_0, bytes, 32);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(out[i], 0.5F * (static_cast<float>(i) - 8));
    EXPECT_EQ(out[i + 16], 0.5F * (7 - static_cast<float>(i)));
  }
}

TEST(GgufDecode, Q41HasAScaleAndAnOffset) {
  std::vector<std::byte> bytes;
  append(bytes, f32_to_f16(0.25F));
  append(bytes, f32_to_f16(-1.5F));
  append_nibbles(bytes);
  const std::vector<float> out = decode(GgufDecode::Q4_1, bytes, 32);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(out[i], 0.25F * static_cast<float>(i) - 1.5F);
    EXPECT_EQ(out[i + 16], 0.25F * (15 - static_cast<float>(i)) - 1.5F);
  }
}

TEST(GgufDecode, Q80TakesEveryCodeOfSeveralBlocks) {
  std::vector<std::byte> bytes;
  std::vector<float> expected;
  for (int block = 0; block < 8; ++block) {
    const auto scale = f32_to_f16(std::ldexp(1.3F, block - 4));
    append(bytes, scale);
    for (int i = 0; i < 32; ++i) {
      const auto code = static_cast<int8_t>(block * 32 + i - 128);
      append(bytes, code);
      expected.push_back(round_to_bf16(f16_to_f32(scale) * static_cast<float>(code)));
    }
  }
  EXPECT_EQ(decode(GgufDecode::Q8_0, bytes, 256), expected);
}

TEST(GgufDecode, ReportsTheFirstValueThatIsNotFinite) {
  std::vector<std::byte> bytes;
  append(bytes, 1.0F);
  append(bytes, std::numeric_limits<float>::max());  // rounds to infinity in bf16
  append(bytes, std::nanf(""));
  std::vector<uint16_t> out(3);
  EXPECT_EQ(decode_blocks(GgufDecode::F32, bytes, out), 1U);
}

}  // namespace
}  // namespace octet
