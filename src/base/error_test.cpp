#include "base/error.h"

#include <gtest/gtest.h>

namespace octet {
namespace {

TEST(ErrorTest, ContextGoesBeforeTheMessage) {
  const Error error = Error(Code::BadInput, "is empty", "fill it").with("file");
  EXPECT_EQ(error.message(), "file: is empty");
  EXPECT_EQ(error.hint(), "fill it");
  EXPECT_EQ(error.code(), Code::BadInput);
}

TEST(ErrorTest, AHintOfACallerCountsWhereThereIsNone) {
  EXPECT_EQ(Error(Code::BadInput, "m").or_hint("caller").hint(), "caller");
  EXPECT_EQ(Error(Code::BadInput, "m", "own").or_hint("caller").hint(), "own");
  EXPECT_EQ(Error(Code::CannotRun, "m").or_hint("caller").code(), Code::CannotRun);
}

}  // namespace
}  // namespace octet
