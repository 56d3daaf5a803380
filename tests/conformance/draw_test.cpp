// Every sampling kernel: filters, edge cases and the distribution of what is drawn.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "op/sample.h"
#include "op/sample_reference.h"
#include "tests/conformance/matrix_lists.h"
#include "tests/conformance/op_kernels.h"
#include "tests/conformance/random.h"

namespace octet::conformance {
namespace {

using SampleConformance = OpTest<Sample>;
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SampleConformance);

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int64_t kVocabs[] = {24, 5000};
constexpr int64_t kRows = 24;
const DeclareMatrices kMatrices{
    {{Sample::kName, "[rows, vocabulary]", [] { return with_rows(kRows, kVocabs); }}}};

// One draw per row, each with its own parameters.
std::vector<int32_t> draw(const Kernel<Sample>& kernel, const std::vector<float>& logits,
                          int64_t vocab, const std::vector<SampleParams>& params,
                          const std::vector<int32_t>& history = {}, int threads = 2) {
  std::vector<int32_t> out(params.size(), -1);
  std::vector<float> scratch(params.size() * 2 * static_cast<size_t>(vocab),
                             std::numeric_limits<float>::quiet_NaN());
  run_on(kernel,
         {logits.data(), static_cast<int64_t>(params.size()), vocab, params.data(),
          history.empty() ? nullptr : history.data(), out.data(), scratch.data()},
         threads);
  return out;
}

// How often each token comes in `draws` draws from one row of logits.
std::map<int32_t, int> counts(const Kernel<Sample>& kernel, const std::vector<float>& logits,
                              SampleParams params, int draws,
                              const std::vector<int32_t>& history = {}) {
  Random random(71);
  std::map<int32_t, int> seen;
  // 50 rows a call, so that batches are drawn too.
  constexpr int kBatch = 50;
  std::vector<float> batch;
  for (int r = 0; r < kBatch; ++r) batch.insert(batch.end(), logits.begin(), logits.end());
  for (int done = 0; done < draws; done += kBatch) {
    std::vector<SampleParams> rows(kBatch, params);
    for (SampleParams& row : rows) row.random = random.bits();
    for (int32_t id : draw(kernel, batch, static_cast<int64_t>(logits.size()), rows, history)) {
      ++seen[id];
    }
  }
  return seen;
}

// Checks drawn counts against probabilities by the chi-squared statistic. With n classes its mean
// is n - 1 and its variance 2 (n - 1); five standard deviations are never left by chance here, and
// the seed is fixed.
void expect_distribution(const std::map<int32_t, int>& seen, const std::map<int32_t, double>& want,
                         int draws) {
  double statistic = 0;
  for (const auto& [id, probability] : want) {
    const auto found = seen.find(id);
    const double count = found == seen.end() ? 0 : found->second;
    const double mean = probability * draws;
    statistic += (count - mean) * (count - mean) / mean;
  }
  for (const auto& [id, count] : seen) {
    EXPECT_TRUE(want.contains(id))
        << "token " << id << " was filtered and came " << count << " times";
  }
  const auto freedom = static_cast<double>(want.size()) - 1;
  EXPECT_LE(statistic, freedom + 5 * std::sqrt(2 * freedom) + 1e-9);
}

// softmax over the logits of `ids`.
std::map<int32_t, double> softmax(const std::vector<float>& logits, const std::vector<int32_t>& ids,
                                  double temperature = 1) {
  std::map<int32_t, double> p;
  double sum = 0;
  for (int32_t id : ids) {
    sum += p[id] = std::exp(logits[static_cast<size_t>(id)] / temperature);
  }
  for (auto& [id, value] : p) value /= sum;
  return p;
}

constexpr int kDraws = 20000;
// Probabilities 0.4, 0.3, 0.2, 0.1 in an order of their own.
const std::vector<float> kFour = {std::log(0.1F), std::log(0.4F), std::log(0.2F), std::log(0.3F)};

TEST_P(SampleConformance, DrawsFromTheSoftmax) {
  expect_distribution(counts(kernel(), kFour, {}, kDraws), softmax(kFour, {0, 1, 2, 3}), kDraws);
}

TEST_P(SampleConformance, AppliesTheTemperature) {
  for (float temperature : {0.5F, 2.0F}) {
    expect_distribution(counts(kernel(), kFour, {.temperature = temperature}, kDraws),
                        softmax(kFour, {0, 1, 2, 3}, temperature), kDraws);
  }
}

TEST_P(SampleConformance, DrawsFromAWideVocabulary) {
  const std::vector<float> logits = Random(72).bells(300, 0.5);
  std::vector<int32_t> ids(300);
  for (int32_t i = 0; i < 300; ++i) ids[static_cast<size_t>(i)] = i;
  expect_distribution(counts(kernel(), logits, {}, 60000), softmax(logits, ids), 60000);
}

TEST_P(SampleConformance, KeepsTheKBest) {
  expect_distribution(counts(kernel(), kFour, {.top_k = 2}, kDraws), softmax(kFour, {1, 3}),
                      kDraws);
  expect_distribution(counts(kernel(), kFour, {.top_k = 1}, 1000), {{1, 1.0}}, 1000);
  expect_distribution(counts(kernel(), kFour, {.top_k = 100}, kDraws), softmax(kFour, {0, 1, 2, 3}),
                      kDraws);
}

TEST_P(SampleConformance, KeepsExactlyKAmongTiesAndPrefersLowIds) {
  const std::vector<float> logits(9, 1.5F);
  expect_distribution(counts(kernel(), logits, {.top_k = 3}, kDraws), softmax(logits, {0, 1, 2}),
                      kDraws);
}

TEST_P(SampleConformance, KeepsTheSmallestSetThatReachesTopP) {
  expect_distribution(counts(kernel(), kFour, {.top_p = 0.65F}, kDraws), softmax(kFour, {1, 3}),
                      kDraws);
  expect_distribution(counts(kernel(), kFour, {.top_p = 0.75F}, kDraws), softmax(kFour, {1, 3, 2}),
                      kDraws);
  // Ties at the edge: the lower ids stay.
  const std::vector<float> even(10, 0.0F);
  expect_distribution(counts(kernel(), even, {.top_p = 0.25F}, kDraws), softmax(even, {0, 1, 2}),
                      kDraws);
}

TEST_P(SampleConformance, KeepsOneTokenAtTopPZero) {
  expect_distribution(counts(kernel(), kFour, {.top_p = 0}, 1000), {{1, 1.0}}, 1000);
}

TEST_P(SampleConformance, MeasuresTopPAmongTheKBest) {
  // Of 0.4 and 0.3 alone the first has 0.571: it reaches 0.55 only after top-k.
  expect_distribution(counts(kernel(), kFour, {.top_k = 2, .top_p = 0.55F}, 1000), {{1, 1.0}},
                      1000);
}

TEST_P(SampleConformance, DropsTokensBelowMinPTimesTheBest) {
  expect_distribution(counts(kernel(), kFour, {.min_p = 0.6F}, kDraws), softmax(kFour, {1, 3}),
                      kDraws);
  expect_distribution(counts(kernel(), kFour, {.min_p = 1}, 1000), {{1, 1.0}}, 1000);
}

TEST_P(SampleConformance, PenalisesEachTokenOnceHoweverOftenItWasSeen) {
  const std::vector<float> logits = {2.0F, 1.0F, -1.0F, 0.5F};
  const std::vector<float> penalised = {1.0F, 1.0F, -2.0F, 0.5F};
  // The history belongs to other rows too; ids that are none of the vocabulary are passed over.
  const std::vector<int32_t> history = {3, 3, 0, 2, 0, 0, -1, 4, 1};
  const SampleParams params{.repetition_penalty = 2, .history_begin = 2, .history_end = 8};
  expect_distribution(counts(kernel(), logits, params, kDraws, history),
                      softmax(penalised, {0, 1, 2, 3}), kDraws);
}

TEST_P(SampleConformance, IsGreedyAtTemperatureZeroAfterThePenalty) {
  const std::vector<float> logits = {2.0F, 1.5F, 1.5F};
  EXPECT_EQ(draw(kernel(), logits, 3, {{.temperature = 0, .random = ~uint64_t{0}}})[0], 0);
  const SampleParams params{.temperature = 0,
                            .repetition_penalty = 2,
                            .history_begin = 0,
                            .history_end = 1,
                            .random = ~uint64_t{0}};
  EXPECT_EQ(draw(kernel(), logits, 3, {params}, {0})[0], 1);
}

TEST_P(SampleConformance, WalksTheTokensBestFirst) {
  // The random number is the place in the cumulative distribution, best token first.
  const auto at = [&](double u) {
    SampleParams params;
    params.random = static_cast<uint64_t>(u * 0x1p53) << 11;
    return draw(kernel(), kFour, 4, {params})[0];
  };
  EXPECT_EQ(at(0), 1);
  EXPECT_EQ(at(0.39), 1);
  EXPECT_EQ(at(0.41), 3);
  EXPECT_EQ(at(0.69), 3);
  EXPECT_EQ(at(0.71), 2);
  EXPECT_EQ(at(0.91), 0);
  SampleParams last;
  last.random = ~uint64_t{0};
  EXPECT_EQ(draw(kernel(), kFour, 4, {last})[0], 0);
}

TEST_P(SampleConformance, DrawsTheTokenThatTheReferenceAdmits) {
  Random random(74);
  constexpr int64_t kVocab = 5000;
  constexpr size_t kDrawn = 200;
  const std::vector<float> logits = random.bells(kDrawn * kVocab, 3);
  std::vector<int32_t> history(60);
  for (int32_t& id : history) id = static_cast<int32_t>(random.below(kVocab));
  std::vector<SampleParams> params(kDrawn);
  for (size_t i = 0; i < kDrawn; ++i) {
    SampleParams& p = params[i];
    p.temperature = i % 10 == 9 ? 0 : static_cast<float>(random.uniform(0.3, 1.5));
    p.top_k = i % 3 == 0 ? static_cast<int32_t>(random.below(60)) : 0;
    p.top_p = i % 2 == 0 ? static_cast<float>(random.uniform(0.5, 1)) : 1;
    p.min_p = i % 5 == 0 ? 0.03F : 0;
    p.random = random.bits();
    if (i % 4 != 0) continue;
    p.repetition_penalty = 1.3F;
    p.history_end = 60;
  }
  const std::vector<int32_t> drawn = draw(kernel(), logits, kVocab, params, history);
  size_t decided = 0;
  for (size_t i = 0; i < kDrawn; ++i) {
    const auto line = std::span(logits).subspan(i * kVocab, kVocab);
    const std::vector<int32_t> admitted = sample_reference(line, params[i], history);
    EXPECT_NE(std::find(admitted.begin(), admitted.end(), drawn[i]), admitted.end())
        << kernel().name << ", row " << i << ", token " << drawn[i];
    decided += static_cast<size_t>(admitted.size() == 1);
  }
  EXPECT_GE(decided, kDrawn * 9 / 10) << "the reference admits too much";
}

TEST_P(SampleConformance, NeverDrawsAnImpossibleToken) {
  std::vector<float> logits(200, -kInf);
  logits[150] = -3;
  logits[20] = -3;
  expect_distribution(counts(kernel(), logits, {}, kDraws), {{20, 0.5}, {150, 0.5}}, kDraws);
  expect_distribution(counts(kernel(), logits, {.top_k = 10, .top_p = 0.999F}, kDraws),
                      {{20, 0.5}, {150, 0.5}}, kDraws);
  logits[7] = std::numeric_limits<float>::quiet_NaN();
  expect_distribution(counts(kernel(), logits, {}, kDraws), {{20, 0.5}, {150, 0.5}}, kDraws);
}

TEST_P(SampleConformance, GivesATokenOfTheVocabularyWhateverTheLogits) {
  for (float value : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()}) {
    for (int32_t id : draw(kernel(), std::vector<float>(80, value), 40,
                           {{.random = 1}, {.top_k = 3, .top_p = 0.5F, .random = ~uint64_t{0}}})) {
      EXPECT_GE(id, 0);
      EXPECT_LT(id, 40);
    }
  }
  EXPECT_EQ(draw(kernel(), {1.0F, kInf, 2.0F}, 3, {{.random = 99}})[0], 1);
}

TEST_P(SampleConformance, SurvivesExtremeTemperatures) {
  EXPECT_EQ(draw(kernel(), kFour, 4, {{.temperature = 1e-38F, .random = ~uint64_t{0}}})[0], 1);
  expect_distribution(counts(kernel(), kFour, {.temperature = 1e30F}, kDraws),
                      {{0, 0.25}, {1, 0.25}, {2, 0.25}, {3, 0.25}}, kDraws);
}

TEST_P(SampleConformance, GivesARowTheSameTokenWhateverThreadsAndBatch) {
  for (int64_t vocab : kVocabs) {
    Random random(73);
    const std::vector<float> logits = random.bells(kRows * vocab, 2);
    std::vector<SampleParams> params(kRows);
    for (size_t i = 0; i < kRows; ++i) {
      params[i].temperature = static_cast<float>(random.uniform(0.3, 3));
      params[i].top_k = i % 3 == 0 ? 40 : 0;
      params[i].top_p = i % 2 == 0 ? 0.9F : 1;
      params[i].random = random.bits();
    }
    const std::vector<int32_t> all = draw(kernel(), logits, vocab, params, {}, 3);
    for (size_t i = 0; i < kRows; ++i) {
      const auto first = logits.begin() + static_cast<int64_t>(i) * vocab;
      const std::vector<float> line(first, first + vocab);
      EXPECT_EQ(draw(kernel(), line, vocab, {params[i]}, {}, 1)[0], all[i])
          << "vocabulary " << vocab << ", row " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, SampleConformance, testing::ValuesIn(runnable<Sample>()),
                         SampleConformance::parameter_name);

}  // namespace
}  // namespace octet::conformance
