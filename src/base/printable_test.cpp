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
}

TEST(Printable, ShowsBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("\xff\xfe{"), "\\xff\\xfe{");
  EXPECT_EQ(printable("a\x9b"
                      "31m\xc2"),
            "a\\x9b31m\\xc2");
  EXPECT_EQ(printable("\xc0\x80"), "\\xc0\\x80");                    // an overlong zero
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // over U+10FFFF
  EXPECT_EQ(printable_name("\xe6\x97"), "\\xe6\\x97");
}

TEST(Printable, CutsWhatIsLonger) {
  EXPECT_EQ(printable_name(std::string(300, 'a')), std::string(300, 'a'));
  EXPECT_EQ(printable_name(std::string(1000, 'a')), std::string(300, 'a') + "...");
  EXPECT_EQ(printable(std::string(9000, 'a') + "\nb\n" + std::string(9000, 'c')),
            std::string(8192, 'a') + "...\nb\n" + std::string(8192, 'c') + "...");
  EXPECT_EQ(printable_line(std::string(9000, 'a') + "\nb"), std::string(8192, 'a') + "...");
}

TEST(Printable, KeepsANameOnOneLine) {
  EXPECT_EQ(printable_name("a\nb\tc"), "a\\x0ab\\x09c");
}

}  // namespace
}  // namespace octet
