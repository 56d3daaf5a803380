#include "num/enum_set.h"

#include <gtest/gtest.h>

#include <vector>

namespace octet {
namespace {

enum class Letter { A, B, C, Last = 63 };

std::string name(Letter letter) {
  switch (letter) {
    case Letter::A:
      return "a";
    case Letter::B:
      return "b";
    case Letter::C:
      return "c";
    case Letter::Last:
      return "last";
  }
  return "";
}

using Letters = EnumSet<Letter>;

TEST(EnumSet, HoldsWhatWasPutInAndNotTakenOut) {
  Letters set{Letter::A, Letter::Last};
  EXPECT_FALSE(set.empty());
  EXPECT_TRUE(set.has(Letter::A));
  EXPECT_FALSE(set.has(Letter::B));
  EXPECT_TRUE(set.has(Letter::Last));
  set.insert(Letter::B);
  set.erase(Letter::A);
  set.erase(Letter::C);
  EXPECT_EQ(set, (Letters{Letter::Last, Letter::B}));
  EXPECT_TRUE(Letters().empty());
}

TEST(EnumSet, MinusKeepsWhatTheOtherLacks) {
  const Letters set{Letter::A, Letter::B};
  EXPECT_EQ(set.minus({Letter::B, Letter::C}), (Letters{Letter::A}));
  EXPECT_EQ(set.minus(set), Letters());
  EXPECT_EQ(set.minus({}), set);
}

TEST(EnumSet, VisitsMembersInTheOrderOfTheEnumeration) {
  std::vector<Letter> seen;
  Letters{Letter::Last, Letter::C, Letter::A}.each([&](Letter letter) { seen.push_back(letter); });
  EXPECT_EQ(seen, (std::vector{Letter::A, Letter::C, Letter::Last}));
}

TEST(EnumSet, IsSpelledAsAList) {
  EXPECT_EQ(to_string(Letters{Letter::C, Letter::A, Letter::Last}), "a, c, last");
  EXPECT_EQ(to_string(Letters()), "none");
}

}  // namespace
}  // namespace octet
