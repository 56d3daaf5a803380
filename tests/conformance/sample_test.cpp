// Every kernel of arg-max, top-k and log-probability.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "op/sample.h"
#include "op/sample_reference.h"
#include "tests/conformance/matrix_lists.h"
#include "tests/conformance/op_kernels.h"
#include "tests/conformance/random.h"

namespace octet::conformance {
namespace {

using ArgMaxConformance = OpTest<ArgMax>;
using TopKConformance = OpTest<TopK>;
using LogProbConformance = OpTest<LogProb>;
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ArgMaxConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TopKConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LogProbConformance);

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kVocabs[] = {1, 2, 3, 4, 6, 7, 8, 9, 63, 100, 1000, 4099};
constexpr int64_t kArgMaxRows = 6, kTopKRows = 4, kLogProbRows = 3;
const DeclareMatrices kMatrices{
    {{ArgMax::kName, "[rows, vocabulary]", [] { return with_rows(kArgMaxRows, kVocabs); }},
     {TopK::kName, "[rows, vocabulary]", [] { return with_rows(kTopKRows, kVocabs); }},
     {LogProb::kName, "[rows, vocabulary]", [] { return with_rows(kLogProbRows, kVocabs); }}}};

std::span<const float> line_of(const std::vector<float>& logits, int64_t row, int64_t vocab) {
  return std::span(logits).subspan(static_cast<size_t>(row * vocab), static_cast<size_t>(vocab));
}

// Logits with ties: multiples of 1/4 in half of the rows.
std::vector<float> logits_with_ties(int64_t rows, int64_t vocab, uint64_t seed) {
  std::vector<float> logits = Random(seed).bells(rows * vocab, 4);
  for (int64_t i = 0; i < rows / 2 * vocab; ++i) {
    float& logit = logits[static_cast<size_t>(i)];
    logit = std::round(logit * 4) / 4;
  }
  return logits;
}

std::vector<int32_t> arg_max(const Kernel<ArgMax>& kernel, const std::vector<float>& logits,
                             int64_t vocab, std::vector<int32_t>* flags = nullptr,
                             int32_t tag = 0) {
  const auto rows = static_cast<int64_t>(logits.size()) / vocab;
  std::vector<int32_t> out(static_cast<size_t>(rows), -1);
  run_on(kernel,
         {logits.data(), rows, vocab, out.data(), flags == nullptr ? nullptr : flags->data(), tag},
         2);
  return out;
}

TEST_P(ArgMaxConformance, FindsTheFirstOfTheLargest) {
  for (int64_t vocab : kVocabs) {
    const std::vector<float> logits = logits_with_ties(kArgMaxRows, vocab, 61);
    const std::vector<int32_t> out = arg_max(kernel(), logits, vocab);
    for (int64_t row = 0; row < kArgMaxRows; ++row) {
      EXPECT_EQ(out[static_cast<size_t>(row)], ranked_tokens(line_of(logits, row, vocab))[0])
          << kernel().name << ", vocab " << vocab;
    }
  }
}

TEST_P(ArgMaxConformance, FindsALargestLogitAtEveryPlace) {
  constexpr int64_t kVocab = 150;
  for (int64_t at = 0; at < kVocab; ++at) {
    std::vector<float> logits(kVocab, -3.0F);
    logits[static_cast<size_t>(at)] = -2.0F;
    EXPECT_EQ(arg_max(kernel(), logits, kVocab)[0], at);
    // Its twin further on changes nothing.
    logits[kVocab - 1] = -2.0F;
    EXPECT_EQ(arg_max(kernel(), logits, kVocab)[0], at);
  }
}

TEST_P(ArgMaxConformance, FlagsRowsWithALogitThatIsNotFinite) {
  for (float poison : {kInf, -kInf, kNan}) {
    for (int64_t vocab : kVocabs) {
      std::vector<float> logits = logits_with_ties(4, vocab, 62);
      logits[static_cast<size_t>(2 * vocab + vocab - 1)] = poison;
      std::vector<int32_t> flags = {50, 3, 50, 50};
      arg_max(kernel(), logits, vocab, &flags, 8);
      EXPECT_EQ(flags, (std::vector<int32_t>{50, 3, 8, 50})) << "vocab " << vocab;
    }
  }
}

TEST_P(ArgMaxConformance, NeverPicksNanOverANumber) {
  for (int64_t vocab : kVocabs) {
    if (vocab < 2) continue;
    std::vector<float> logits(static_cast<size_t>(vocab), kNan);
    logits[static_cast<size_t>(vocab - 1)] = -5;
    EXPECT_EQ(arg_max(kernel(), logits, vocab)[0], vocab - 1) << kernel().name;
    logits.assign(static_cast<size_t>(vocab), -4);
    logits[0] = kNan;
    EXPECT_EQ(arg_max(kernel(), logits, vocab)[0], 1) << kernel().name;
  }
}

TEST_P(ArgMaxConformance, GivesTokenZeroWhenNothingIsBetter) {
  for (float value : {-kInf, kNan}) {
    EXPECT_EQ(arg_max(kernel(), std::vector<float>(40, value), 40)[0], 0) << kernel().name;
  }
}

struct Top {
  std::vector<int32_t> ids;
  std::vector<float> logprobs;
};

Top top(const Kernel<TopK>& kernel, const std::vector<float>& logits, int64_t vocab, int64_t k,
        int threads = 2) {
  const auto rows = static_cast<int64_t>(logits.size()) / vocab;
  Top out;
  out.ids.assign(static_cast<size_t>(rows * k), -1);
  out.logprobs.assign(out.ids.size(), 9);
  run_on(kernel, {logits.data(), rows, vocab, k, out.ids.data(), out.logprobs.data()}, threads);
  return out;
}

TEST_P(TopKConformance, ListsTheKBestInOrderWithTheirLogProbabilities) {
  for (int64_t vocab : kVocabs) {
    const std::vector<float> logits = logits_with_ties(kTopKRows, vocab, 63);
    for (int64_t k :
         {int64_t{1}, int64_t{2}, int64_t{5}, int64_t{20}, vocab / 2, vocab - 1, vocab}) {
      if (k < 1 || k > vocab) continue;
      const Top got = top(kernel(), logits, vocab, k);
      for (int64_t row = 0; row < kTopKRows; ++row) {
        const auto line = line_of(logits, row, vocab);
        const std::vector<int32_t> order = ranked_tokens(line);
        const double norm = log_sum_exp(line);
        for (int64_t i = 0; i < k; ++i) {
          const auto at = static_cast<size_t>(row * k + i);
          const int32_t id = order[static_cast<size_t>(i)];
          ASSERT_EQ(got.ids[at], id)
              << kernel().name << ", vocab " << vocab << ", k " << k << ", rank " << i;
          const Expected e = logprob_reference(line[static_cast<size_t>(id)], norm);
          ASSERT_NEAR(got.logprobs[at], e.value, e.bound) << kernel().name;
        }
      }
    }
  }
}

TEST_P(TopKConformance, PutsImpossibleTokensLast) {
  std::vector<float> logits(50, -kInf);
  logits[30] = 1;
  logits[10] = 2;
  const Top got = top(kernel(), logits, 50, 4);
  EXPECT_EQ(got.ids, (std::vector<int32_t>{10, 30, 0, 1}));
  EXPECT_EQ(got.logprobs[2], -kInf);
  const double norm = std::log(std::exp(2.0) + std::exp(1.0));
  const Expected e = logprob_reference(2, norm);
  EXPECT_NEAR(got.logprobs[0], e.value, e.bound);
}

TEST_P(TopKConformance, HandlesTheRangeOfFloat) {
  const Top got = top(kernel(), {3e38F, -3e38F, 2.9e38F, 0}, 4, 4);
  EXPECT_EQ(got.ids, (std::vector<int32_t>{0, 2, 3, 1}));
  EXPECT_EQ(got.logprobs[0], 0);
  EXPECT_LT(got.logprobs[3], -3e38F);
}

TEST_P(TopKConformance, GivesTheSameBitsWhateverThreadsAndBatch) {
  constexpr int64_t kVocab = 1000;
  const std::vector<float> logits = logits_with_ties(5, kVocab, 64);
  const Top all = top(kernel(), logits, kVocab, 20, 3);
  for (int64_t row = 0; row < 5; ++row) {
    const std::vector<float> line(logits.begin() + row * kVocab,
                                  logits.begin() + (row + 1) * kVocab);
    const Top one = top(kernel(), line, kVocab, 20, 1);
    EXPECT_EQ(std::memcmp(one.logprobs.data(), all.logprobs.data() + row * 20, 80), 0);
    EXPECT_EQ(std::memcmp(one.ids.data(), all.ids.data() + row * 20, 80), 0);
  }
}

TEST_P(LogProbConformance, StaysWithinBoundOfTheDoubleReference) {
  for (int64_t vocab : kVocabs) {
    for (double spread : {0.0, 1.0, 30.0}) {
      const std::vector<float> logits = Random(65).bells(kLogProbRows * vocab, spread);
      const std::vector<int32_t> ids = {0, static_cast<int32_t>(vocab / 2),
                                        static_cast<int32_t>(vocab - 1)};
      std::vector<float> out(kLogProbRows);
      run_on(kernel(), {logits.data(), kLogProbRows, vocab, ids.data(), out.data()}, 2);
      for (size_t row = 0; row < kLogProbRows; ++row) {
        const auto line = line_of(logits, static_cast<int64_t>(row), vocab);
        const Expected e =
            logprob_reference(line[static_cast<size_t>(ids[row])], log_sum_exp(line));
        ASSERT_NEAR(out[row], e.value, e.bound)
            << kernel().name << ", vocab " << vocab << ", spread " << spread;
      }
    }
  }
}

TEST_P(LogProbConformance, EqualsTopKBitForBit) {
  constexpr int64_t kVocab = 500;
  const std::vector<float> logits = logits_with_ties(1, kVocab, 66);
  // The top-k kernel of the same instruction set.
  const std::string_view isa = kernel().name.substr(kernel().name.rfind('.'));
  for (const Kernel<TopK>* other : runnable<TopK>()) {
    if (!other->name.ends_with(isa)) continue;
    const Top all = top(*other, logits, kVocab, kVocab);
    for (size_t i = 0; i < all.ids.size(); i += 50) {
      float out = 0;
      run_on(kernel(), {logits.data(), 1, kVocab, &all.ids[i], &out}, 1);
      EXPECT_EQ(out, all.logprobs[i]) << kernel().name << " and " << other->name;
    }
  }
}

TEST_P(LogProbConformance, IsNanWhenALogitIs) {
  std::vector<float> logits(100, 1.0F);
  logits[99] = kNan;
  const int32_t id = 3;
  float out = 0;
  run_on(kernel(), {logits.data(), 1, 100, &id, &out}, 1);
  EXPECT_TRUE(std::isnan(out)) << kernel().name;
}

INSTANTIATE_TEST_SUITE_P(Kernels, ArgMaxConformance, testing::ValuesIn(runnable<ArgMax>()),
                         ArgMaxConformance::parameter_name);
INSTANTIATE_TEST_SUITE_P(Kernels, TopKConformance, testing::ValuesIn(runnable<TopK>()),
                         TopKConformance::parameter_name);
INSTANTIATE_TEST_SUITE_P(Kernels, LogProbConformance, testing::ValuesIn(runnable<LogProb>()),
                         LogProbConformance::parameter_name);

}  // namespace
}  // namespace octet::conformance
