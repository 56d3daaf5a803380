#include "evaluate/perplexity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "testing/fake_device.h"
#include "testing/tiny_checkpoint.h"

namespace octet {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

constexpr int32_t kVocab = 80;
constexpr int64_t kContext = 24;

TinyModel small() {
  return small_tiny_model(tiny_fp8_dynamic(), kVocab, kContext);
}

Ids some_tokens(int32_t count) {
  Ids tokens(static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) tokens[static_cast<size_t>(i)] = (3 + 11 * i * i) % kVocab;
  return tokens;
}

class PerplexityTest : public ::testing::Test {
 protected:
  PerplexityTest() : path_(tiny_model(small()).write(folder_.path() / "model")) {
    info_.threads = 2;
    cpu_ = make_cpu_device(info_, 2);
  }

  std::unique_ptr<Engine> engine(Device& device, int64_t rows = 512) const {
    PlanOptions options;
    options.policy.carrier = Carrier::F32;
    options.max_batch_tokens = rows;
    return std::make_unique<Engine>(prepare(path_, false, info_, std::move(options)), device);
  }
  Perplexity measure(const Ids& tokens) { return perplexity(*engine(*cpu_), tokens, nullptr); }

  // log p(tokens[i] | tokens[0, i)) as a request for an answer reports it.
  double logprob(const Ids& tokens, size_t i) {
    const auto one = engine(*cpu_);
    Request request;
    request.prompt.assign(tokens.begin(), tokens.begin() + static_cast<int64_t>(i));
    request.max_tokens = 1;
    request.top_logprobs = kVocab;
    one->submit(std::move(request));
    while (!one->idle()) {
      for (const Event& event : one->step()) {
        for (const auto& [id, value] : event.top) {
          if (id == tokens[i]) return value;
        }
      }
    }
    ADD_FAILURE() << "no log-probability of token " << i;
    return 0;
  }

  TinyFolder folder_;
  std::filesystem::path path_;
  DeviceInfo info_ = probe_cpu();
  std::unique_ptr<Device> cpu_;
};

TEST_F(PerplexityTest, AContextOfOneTokenIsRefused) {
  PlanOptions options;
  options.max_model_len = 1;
  Engine engine(prepare(path_, false, info_, std::move(options)), *cpu_);
  try {
    perplexity(engine, some_tokens(9), nullptr);
    ADD_FAILURE() << "scored";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::BadInput);
    EXPECT_THAT(error.hint(), HasSubstr("--max-model-len"));
  }
}

TEST_F(PerplexityTest, IsTheMeanOfWhatTheModelGivesEachNextToken) {
  const Ids tokens = some_tokens(9);
  double sum = 0;
  for (size_t i = 1; i < tokens.size(); ++i) sum -= logprob(tokens, i);
  const Perplexity got = measure(tokens);
  EXPECT_EQ(got.tokens, 9);
  EXPECT_EQ(got.scored, 8);
  EXPECT_NEAR(got.nll, sum / 8, 1e-6);
  EXPECT_DOUBLE_EQ(got.perplexity(), std::exp(got.nll));
}

TEST_F(PerplexityTest, ReadsATextThatFitsAsOneSequence) {
  EXPECT_EQ(measure(some_tokens(kContext)).scored, kContext - 1);
}

TEST_F(PerplexityTest, ReadsALongerTextInWindowsOfTheWholeContext) {
  const Ids tokens = some_tokens(2 * kContext + 5);
  const Perplexity whole = measure(tokens);
  double sum = 0;
  int64_t scored = 0;
  for (size_t begin = 0; begin < tokens.size(); begin += kContext) {
    const auto first = tokens.begin() + static_cast<int64_t>(begin);
    const Perplexity part =
        measure({first, first + std::min<int64_t>(kContext, tokens.end() - first)});
    sum += part.nll * static_cast<double>(part.scored);
    scored += part.scored;
  }
  EXPECT_EQ(whole.tokens, 2 * kContext + 5);
  EXPECT_EQ(whole.scored, 2 * kContext + 5 - 3);
  EXPECT_EQ(whole.scored, scored);
  EXPECT_NEAR(whole.nll, sum / static_cast<double>(scored), 1e-12);
}

TEST_F(PerplexityTest, LeavesOutALastWindowOfOneToken) {
  const Perplexity got = measure(some_tokens(kContext + 1));
  EXPECT_EQ(got.tokens, kContext + 1);
  EXPECT_EQ(got.scored, kContext - 1);
  EXPECT_EQ(got.nll, measure(some_tokens(kContext)).nll);
}

TEST_F(PerplexityTest, HasTheSameBitsInStepsOfAnySizeAndOnADeviceWithItsOwnMemory) {
  const Ids tokens = some_tokens(kContext);
  const double nll = measure(tokens).nll;
  EXPECT_EQ(perplexity(*engine(*cpu_, 5), tokens, nullptr).nll, nll);
  const auto fake = make_fake_device(info_, 1);
  EXPECT_EQ(perplexity(*engine(*fake), tokens, nullptr).nll, nll);
}

TEST_F(PerplexityTest, ReportsProgressUpToTheWholeText) {
  std::vector<int64_t> done;
  perplexity(*engine(*cpu_, 8), some_tokens(2 * kContext),
             [&](int64_t tokens) { done.push_back(tokens); });
  ASSERT_FALSE(done.empty());
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), 2 * kContext);
}

TEST_F(PerplexityTest, RefusesATextThatPredictsNothing) {
  for (const Ids& tokens : {Ids{}, Ids{4}}) {
    try {
      measure(tokens);
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::BadInput);
      EXPECT_THAT(e.message(), HasSubstr(fmt::format("{} tokens", tokens.size())));
    }
  }
}

TEST_F(PerplexityTest, RefusesTokensThatTheModelDoesNotHave) {
  for (const int32_t id : {-1, kVocab}) {
    try {
      measure({1, 2, id});
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::BadInput);
      EXPECT_THAT(e.message(), HasSubstr(std::to_string(id)));
    }
  }
}

TEST_F(PerplexityTest, StopsAtValuesThatAreNotFinite) {
  TinyCheckpoint checkpoint = tiny_model(small());
  const std::string norm = "model.layers.0.post_attention_layernorm.weight";
  checkpoint.remove(norm);
  checkpoint.add_values(norm, DType::BF16, Shape{64},
                        std::vector<float>(64, std::numeric_limits<float>::infinity()));
  path_ = checkpoint.write(folder_.path() / "broken");
  try {
    measure(some_tokens(9));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::Environment);
    EXPECT_THAT(e.message(), HasSubstr("not finite"));
  }
}

}  // namespace
}  // namespace octet
