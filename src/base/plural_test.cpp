#include "base/plural.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace octet {
namespace {

TEST(Plural, OneIsSingularAndAllElseIsNot) {
  EXPECT_EQ(counted(1, "token"), "1 token");
  EXPECT_EQ(counted(0, "token"), "0 tokens");
  EXPECT_EQ(counted(uint64_t{2}, "token"), "2 tokens");
  EXPECT_EQ(counted(int64_t{-1}, "token"), "-1 tokens");
}

}  // namespace
}  // namespace octet
