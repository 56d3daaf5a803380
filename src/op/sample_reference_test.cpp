#include "op/sample_reference.h"

#include <gmock/gmock.h>

#include <cmath>

namespace octet {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// Probabilities 0.4, 0.3, 0.2, 0.1 in an order of their own.
const std::vector<float> kFour = {std::log(0.1F), std::log(0.4F), std::log(0.2F), std::log(0.3F)};

std::vector<int32_t> at(double place, SampleParams params = {},
                        const std::vector<int32_t>& history = {}) {
  params.random = static_cast<uint64_t>(place * 0x1p53) << 11;
  return sample_reference(kFour, params, history);
}

TEST(SampleReference, WalksTheTokensBestFirst) {
  EXPECT_THAT(at(0), ElementsAre(1));
  EXPECT_THAT(at(0.39), ElementsAre(1));
  EXPECT_THAT(at(0.41), ElementsAre(3));
  EXPECT_THAT(at(0.71), ElementsAre(2));
  EXPECT_THAT(at(0.91), ElementsAre(0));
}

TEST(SampleReference, AdmitsBothSidesOfAnEdgeThatRoundingDecides) {
  EXPECT_THAT(at(0.4), ElementsAre(1, 3));
  EXPECT_THAT(at(0.4 + 1e-5), ElementsAre(3));
}

TEST(SampleReference, FiltersAsSampleDoes) {
  EXPECT_THAT(at(0.99, {.top_k = 2}), ElementsAre(3));
  EXPECT_THAT(at(0.99, {.top_p = 0.75F}), ElementsAre(2));
  EXPECT_THAT(at(0.99, {.top_p = 0}), ElementsAre(1));
  EXPECT_THAT(at(0.99, {.top_k = 2, .top_p = 0.55F}), ElementsAre(1));
  EXPECT_THAT(at(0.99, {.min_p = 0.6F}), ElementsAre(3));
  EXPECT_THAT(at(0.99, {.min_p = 1}), ElementsAre(1));
}

TEST(SampleReference, AFilterWhoseEdgeRoundingDecidesAdmitsBothResults) {
  // 0.4 + 0.3 reaches 0.7 or does not.
  EXPECT_THAT(at(0.99, {.top_p = 0.7F}), ElementsAre(3, 2));
}

TEST(SampleReference, PenalisesOnceAndPassesOverStrangeIds) {
  // The best logit, log 0.4, is below zero: three times as far.
  const SampleParams params{
      .temperature = 0, .repetition_penalty = 3, .history_begin = 1, .history_end = 5};
  EXPECT_THAT(at(0, params, {3, 1, -1, 4, 1, 3}), ElementsAre(3));
}

TEST(SampleReference, TiesGoToTheLowerId) {
  EXPECT_THAT(ranked_tokens(std::vector<float>{1, 2, 2, 3, 1}), ElementsAre(3, 1, 2, 0, 4));
}

TEST(SampleReference, LogProbabilitiesAddUpToOne) {
  double sum = 0;
  for (const float logit : kFour) {
    sum += std::exp(logprob_reference(logit, log_sum_exp(kFour)).value);
  }
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_THAT(ranked_tokens(kFour), SizeIs(4));
}

}  // namespace
}  // namespace octet
