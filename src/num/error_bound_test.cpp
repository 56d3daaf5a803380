#include "num/error_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"

namespace octet {
namespace {

TEST(ErrorBound, CountsLaneTreeSegmentsAndRoundings) {
  // 100 elements in 8 lanes: 13 additions in a lane, 3 levels of the tree, 1 segment, 2 + bias.
  EXPECT_EQ(longest_chain({.segments = 1, .longest = 100, .lanes = 8, .roundings = 2}), 20);
  EXPECT_EQ(longest_chain({.segments = 4, .longest = 32, .lanes = 1, .roundings = 1}), 38);
}

TEST(ErrorBound, LanesThatStayEmptyCostNothing) {
  EXPECT_EQ(longest_chain({.segments = 1, .longest = 1, .lanes = 16, .roundings = 1}), 4);
  EXPECT_EQ(longest_chain({.segments = 1, .longest = 2, .lanes = 16, .roundings = 1}), 5);
}

TEST(ErrorBound, ShortPartsMayMeetAtEveryLevelOfTheTree) {
  // Seven elements in lanes 0, 1, 2, 4, 8 and others: the first is added to at all four levels.
  EXPECT_EQ(longest_chain({.segments = 1, .longest = 7, .lanes = 16, .roundings = 0}), 7);
}

TEST(ErrorBound, WhatIsLeftAfterWholeRunsMayFallIntoOneLane) {
  // 64 elements: 4 a lane. 10 more: up to 4 of them in one lane. 4 levels, 1 segment, 0 + bias.
  const DotShape shape{.longest = 74, .lanes = 16, .run = 4, .roundings = 0};
  EXPECT_EQ(longest_chain(shape), 4 + 4 + 4 + 1 + 1);
  EXPECT_EQ(longest_chain({.longest = 66, .lanes = 16, .run = 4, .roundings = 0}), 12);
  EXPECT_EQ(longest_chain({.longest = 64, .lanes = 16, .run = 4, .roundings = 0}), 10);
}

TEST(ErrorBound, WideSumsCountOnlyTheRoundings) {
  EXPECT_EQ(longest_chain({.segments = 9, .longest = 4096, .roundings = 1, .wide = true}), 2);
}

TEST(ErrorBound, ProbableBoundIsBelowTheWorstCaseOfLongChains) {
  EXPECT_LT(probable_bound(1024, 1.0), worst_bound(1024, 1.0));
  EXPECT_NEAR(worst_bound(1, 1.0), 0x1p-24, 1e-14);
  EXPECT_DOUBLE_EQ(probable_bound(4, 3.0), kProbableFactor * 6 * 0x1p-24);
}

TEST(ErrorBound, WorstCaseOfAChainAsLongAsThePrecisionIsABug) {
  EXPECT_THROW(worst_bound(int64_t{1} << 24, 1.0), Error);
}

// Sums of one sign in one chain have the largest errors of all that the bounds cover.
TEST(ErrorBound, HoldsForChainsOfOneSignAndIsNotLoose) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(0.5F, 1.0F);
  constexpr int64_t kLength = 1000;
  double largest = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    float sum = 0;
    double exact = 0;
    for (int64_t i = 0; i < kLength; ++i) {
      const float term = uniform(random);
      sum += term;
      exact += term;
    }
    const double error = std::fabs(sum - exact);
    EXPECT_LE(error, worst_bound(kLength, exact));
    EXPECT_LE(error, probable_bound(kLength, exact)) << "trial " << trial;
    largest = std::max(largest, error / probable_bound(kLength, exact));
  }
  EXPECT_GE(largest, 1.0 / 16);
}

}  // namespace
}  // namespace octet
