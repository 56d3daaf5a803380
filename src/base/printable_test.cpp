#include "base/printable.h"

#include <gtest/gtest.h>

namespace octet {
namespace {

TEST(Printable, ShowsControlCharacters) {
  EXPECT_EQ(printable("a\x1b[31mb\x07\x7f\r"), "a\\x1b[31mb\\x07\\x7f\\x0d");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

TEST(Printable, ShowsTheControlsThatUtf8Hides) {
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m");
  EXPECT_EQ(printable("\xc2\x80\xc2\x9f"), "\\u0080\\u009f");
}

TEST(Printable, LeavesTextAsItIs) {
  const std::string text = "two lines\n\tof text: \xc3\xa4 \xc2\xa0 \xe6\x97\xa5 \xf0\x9f\x98\x80";
  EXPECT_EQ(printable(text), text);
  EXPECT_EQ(printable("\xc2"), "\xc2");  // not UTF-8, and not a control
}

TEST(Printable, KeepsANameOnOneLine) {
  EXPECT_EQ(printable_name("a\nb\tc"), "a\\x0ab\\x09c");
}

}  // namespace
}  // namespace octet
