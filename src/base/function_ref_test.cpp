#include "base/function_ref.h"

#include <gtest/gtest.h>

#include <string>

namespace octet {
namespace {

int call(FunctionRef<int(int)> f) {
  return f(20);
}

TEST(FunctionRef, CallsTheLambdaItRefersTo) {
  int calls = 0;
  EXPECT_EQ(call([&](int x) {
              ++calls;
              return x + 1;
            }),
            21);
  EXPECT_EQ(calls, 1);
}

TEST(FunctionRef, KeepsTheStateOfANamedCallable) {
  int total = 0;
  auto add = [&total](int x) { return total += x; };
  const FunctionRef<int(int)> ref = add;
  ref(1);
  const FunctionRef<int(int)> copy = ref;
  EXPECT_EQ(copy(2), 3);
}

TEST(FunctionRef, PassesReferencesThrough) {
  const auto append = [](std::string& text) { text += "!"; };
  std::string text = "go";
  const FunctionRef<void(std::string&)> ref = append;
  ref(text);
  EXPECT_EQ(text, "go!");
}

}  // namespace
}  // namespace octet
