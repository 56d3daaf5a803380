#include "text/utf8.h"

#include <gtest/gtest.h>

namespace octet {
namespace {

std::string lossy(std::string_view bytes, size_t piece) {
  LossyUtf8 stream;
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += piece) stream.push(bytes.substr(at, piece), out);
  stream.flush(out);
  return out;
}

TEST(Utf8, NamesTheFirstBadByte) {
  EXPECT_EQ(find_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("caf\xC3\xA9 \xF0\x9F\x98\x80"), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("caf\xE9!"), 3U);          // Latin-1
  EXPECT_EQ(find_invalid_utf8("ab\xC3"), 2U);            // cut short
  EXPECT_EQ(find_invalid_utf8("\xED\xA0\x80"), 0U);      // surrogate
  EXPECT_EQ(find_invalid_utf8("x\xC0\x80"), 1U);         // overlong
  EXPECT_EQ(find_invalid_utf8("\xF4\x90\x80\x80"), 0U);  // above U+10FFFF
  EXPECT_EQ(find_invalid_utf8(std::string(1000, 'a') + "\x80"), 1000U);
}

TEST(Utf8, RoundTripsEveryCharacter) {
  for (uint32_t value = 0; value < 0x110000; ++value) {
    if (value >= 0xD800 && value < 0xE000) continue;
    std::string text = "<";
    append_utf8(text, value);
    ASSERT_EQ(code_point_at(text, 1).value, value);
    ASSERT_EQ(code_point_at(text, 1).bytes, text.size() - 1);
    ASSERT_EQ(code_point_before(text, text.size()).value, value);
    ASSERT_FALSE(find_invalid_utf8(text)) << value;
    ASSERT_EQ(lossy(text, 1), text);
  }
}

// The example of the Unicode standard, 3.9, table 3-11, and its neighbours.
TEST(Utf8, ReplacesMaximalSubpartsHoweverTheBytesArrive) {
  const std::pair<std::string, std::string> cases[] = {
      {"a\xF1\x80\x80\xE1\x80\xC2"
       "b\x80"
       "c\x80\xBF"
       "d",
       "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd"},
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82"
       "A",
       "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA"},
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF"
       "A",
       "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA"},
      {"\xF0\x9F", "\uFFFD"},
      {"\xF0\x9F a", "\uFFFD a"},
      {"\xE4\xBD\xE4\xBD\xA0", "\uFFFD\u4F60"},
  };
  for (const auto& [bytes, expected] : cases) {
    for (const size_t piece : {1U, 2U, 3U, 100U}) EXPECT_EQ(lossy(bytes, piece), expected) << piece;
  }
}

}  // namespace
}  // namespace octet
