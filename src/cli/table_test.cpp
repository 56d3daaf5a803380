#include "cli/table.h"

#include <gtest/gtest.h>

namespace octet {
namespace {

TEST(TextTable, AlignsColumnsAndTrimsLines) {
  TextTable table({Align::Left, Align::Right});
  table.header({"kernel", "bytes", "note"});
  table.row({"cpu.linear", "12", ""});
  table.row({"x", "1234567", "fits\nwell"});
  table.row({"short"});
  EXPECT_EQ(table.to_string(),
            "kernel        bytes  note\n"
            "----------  -------  ---------\n"
            "cpu.linear       12\n"
            "x           1234567  fits well\n"
            "short\n");
  EXPECT_EQ(table.rows(), 3u);
}

TEST(TextTable, IndentsAndWorksWithoutAHeader) {
  TextTable table;
  table.row({"a", "b"});
  table.row({"", "c"});
  EXPECT_EQ(table.to_string(2), "  a  b\n     c\n");
  EXPECT_EQ(TextTable().to_string(), "");
}

TEST(TextTable, AlignsUtf8) {
  TextTable table;
  table.row({"\xe6\x97\xa5\xe6\x9c\xac", "x"});
  table.row({"\xc3\xa4", "y"});
  EXPECT_EQ(table.to_string(), "\xe6\x97\xa5\xe6\x9c\xac  x\n\xc3\xa4     y\n");
}

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width(""), 0u);
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("\xc3\xa4"), 1u);          // a with diaeresis
  EXPECT_EQ(display_width("e\xcc\x81"), 1u);         // e and a combining acute
  EXPECT_EQ(display_width("\xe6\x97\xa5"), 2u);      // CJK
  EXPECT_EQ(display_width("\xf0\x9f\x98\x80"), 2u);  // emoji
  EXPECT_EQ(display_width("\xe2\x9c\x93"), 1u);      // check mark
  EXPECT_EQ(display_width("a\x1b[b\n"), 3u);         // control characters have none
}

TEST(DisplayWidth, CountsEachStrayByteOnce) {
  EXPECT_EQ(display_width("\xff"), 1u);
  EXPECT_EQ(display_width("\xe6\x97"), 2u);
  EXPECT_EQ(display_width("\xc3(a"), 3u);
  EXPECT_EQ(display_width("\xf5\x80\x80\x80"), 4u);
}

}  // namespace
}  // namespace octet
