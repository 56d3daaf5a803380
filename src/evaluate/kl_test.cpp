#include "evaluate/kl.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/error.h"
#include "testing/tiny_checkpoint.h"

namespace octet {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

constexpr int32_t kVocab = 80;
constexpr int64_t kContext = 24;

TinyModel small(uint64_t seed = 1, int64_t vocab = kVocab) {
  TinyModel model = small_tiny_model(tiny_fp8_dynamic(), vocab, kContext);
  model.seed = seed;
  return model;
}

Ids some_tokens(int32_t count) {
  Ids tokens(static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) tokens[static_cast<size_t>(i)] = (3 + 11 * i * i) % kVocab;
  return tokens;
}

TEST(TokenKl, IsZeroForEqualLogitsAndForAShift) {
  const std::vector<float> a{1, 2, 3}, b{11, 12, 13};
  EXPECT_EQ(token_kl(a, a, 0).kl, 0);
  EXPECT_NEAR(token_kl(a, b, 0).kl, 0, 1e-15);
  EXPECT_TRUE(token_kl(a, b, 0).same_best);
}

TEST(TokenKl, IsTheFormulaAndNotItsMirror) {
  // p = (1/4, 3/4), q = (1/2, 1/2).
  const std::vector<float> p{0, std::log(3.0F)}, q{0, 0};
  const TokenKl one = token_kl(p, q, 1);
  EXPECT_NEAR(one.kl, 0.25 * std::log(0.5) + 0.75 * std::log(1.5), 1e-7);
  EXPECT_FALSE(one.same_best);
  EXPECT_NEAR(one.reference_nll, -std::log(0.75), 1e-7);
  EXPECT_NEAR(one.nll, -std::log(0.5), 1e-7);
  EXPECT_NEAR(token_kl(q, p, 1).kl, 0.5 * std::log(2.0) + 0.5 * std::log(2.0 / 3), 1e-7);
}

TEST(TokenKl, LogitsOfAnySizeAreNoOverflow) {
  const std::vector<float> a{3000, -3000}, b{-3000, 3000};
  EXPECT_NEAR(token_kl(a, b, 0).kl, 6000, 1e-6);
}

class KlTest : public ::testing::Test {
 protected:
  KlTest() {
    info_.threads = 2;
    cpu_ = make_cpu_device(info_, 2);
  }

  std::unique_ptr<Engine> engine(const TinyModel& model, Carrier carrier = Carrier::F32,
                                 int64_t rows = 512) {
    PlanOptions options;
    options.policy.carrier = carrier;
    options.max_batch_tokens = rows;
    const auto path = tiny_model(model).write(folder_.path() / fmt::format("model{}", ++models_));
    return std::make_unique<Engine>(prepare(path, false, info_, std::move(options)), *cpu_);
  }
  KlResult measure(Engine& a, Engine& b, const Ids& tokens) {
    ThreadPool pool(2);
    return kl_divergence(a, b, tokens, pool, nullptr);
  }

  TinyFolder folder_;
  DeviceInfo info_ = probe_cpu();
  std::unique_ptr<Device> cpu_;
  int models_ = 0;
};

TEST_F(KlTest, AModelIsLikeItself) {
  const auto a = engine(small()), b = engine(small());
  const KlResult r = measure(*a, *b, some_tokens(20));
  EXPECT_EQ(r.tokens, 20);
  EXPECT_EQ(r.scored, 19);
  EXPECT_EQ(r.max, 0);
  EXPECT_EQ(r.top1_agreement, 1);
  EXPECT_EQ(r.nll, r.reference_nll);
  EXPECT_GT(r.nll, 0);
}

TEST_F(KlTest, TwoModelsAreNot) {
  const auto a = engine(small(1)), b = engine(small(2));
  const KlResult r = measure(*a, *b, some_tokens(20));
  EXPECT_GT(r.mean, 0.1);
  EXPECT_LE(r.p50, r.p90);
  EXPECT_LE(r.p90, r.p99);
  EXPECT_LE(r.p99, r.p999);
  EXPECT_LE(r.p999, r.max);
  EXPECT_LT(r.top1_agreement, 1);
  EXPECT_GE(r.max_token, 1);
  EXPECT_LT(r.max_token, 20);
}

TEST_F(KlTest, StepsAndWindowsChangeNothing) {
  const Ids tokens = some_tokens(2 * kContext + 5);
  const auto a = engine(small(1)), b = engine(small(2));
  const auto c = engine(small(1), Carrier::F32, 5), d = engine(small(2), Carrier::F32, 7);
  const KlResult x = measure(*a, *b, tokens);
  const KlResult y = measure(*c, *d, tokens);
  EXPECT_EQ(x.scored, 2 * kContext + 5 - 3);
  EXPECT_EQ(x.scored, y.scored);
  EXPECT_EQ(x.mean, y.mean);
  EXPECT_EQ(x.max_token, y.max_token);
  EXPECT_EQ(x.nll, y.nll);
}

TEST_F(KlTest, VocabulariesOfDifferentSizesAreRefused) {
  const auto a = engine(small(1)), b = engine(small(1, kVocab + 8));
  try {
    measure(*a, *b, some_tokens(9));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::BadInput);
    EXPECT_THAT(error.message(), HasSubstr("80"));
    EXPECT_THAT(error.message(), HasSubstr("88"));
  }
}

TEST_F(KlTest, ATextThatPredictsNothingIsRefused) {
  const auto a = engine(small()), b = engine(small());
  EXPECT_THROW(measure(*a, *b, {3}), Error);
}

}  // namespace
}  // namespace octet
