#include "text/unicode.h"

#include <gtest/gtest.h>

namespace octet {
namespace {

TEST(Unicode, CountsAsRustCountsInUnicode17) {
  size_t numeric = 0, white = 0;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    numeric += is_numeric(c);
    white += is_white_space(c);
  }
  EXPECT_EQ(numeric, 1924U);
  EXPECT_EQ(white, 25U);
}

TEST(Unicode, TakesNumbersOfEveryKindButNoIdeographs) {
  for (const uint32_t c :
       {0x37, 0xB2, 0xBD, 0x0663, 0x096B, 0x2167, 0x2460, 0x3007, 0x10D40, 0x11DE9}) {
    EXPECT_TRUE(is_numeric(c)) << std::hex << c;
  }
  for (const uint32_t c : {0x61, 0x20, 0xAA, 0x4E09, 0x1F600, 0x0E00})
    EXPECT_FALSE(is_numeric(c)) << std::hex << c;
}

TEST(Unicode, TakesNoMongolianSeparatorNorZeroWidthSpaceForWhite) {
  for (const uint32_t c : {0x180E, 0x200B, 0xFEFF}) EXPECT_FALSE(is_white_space(c));
  for (const uint32_t c : {0x09, 0x0D, 0x85, 0xA0, 0x2009, 0x3000}) EXPECT_TRUE(is_white_space(c));
}

}  // namespace
}  // namespace octet
