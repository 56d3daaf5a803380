#include "quantize/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "num/bf16.h"
#include "testing/tiny_checkpoint.h"

namespace octet {
namespace {

using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;

constexpr int64_t kHidden = 64;
constexpr size_t kLinears = 2 * 7 + 1;  // of two layers and the head

TinyModel small() {
  TinyModel model;
  model.hidden = kHidden;
  model.intermediate = 96;
  model.heads = 4;
  model.head_dim = 16;
  model.vocab = 80;
  model.max_positions = 64;
  return model;
}

std::vector<int32_t> some_tokens(int32_t count) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) tokens[static_cast<size_t>(i)] = (3 + 11 * i) % 80;
  return tokens;
}

// An engine over a checkpoint of its own.
class Calibration {
 public:
  explicit Calibration(const TinyCheckpoint& checkpoint)
      : device_(make_cpu_device(info(), 2)),
        engine_(prepare(checkpoint.write(folder_.path()), false, info(), options()), *device_) {}

  std::vector<float> amax(const std::vector<int32_t>& tokens, int64_t window = 32) {
    return calibrate(engine_, tokens, window, [this](int64_t done) { progress.push_back(done); });
  }

  std::vector<int64_t> progress;

 private:
  static DeviceInfo info() {
    DeviceInfo info = probe_cpu();
    info.threads = 2;
    return info;
  }
  static PlanOptions options() {
    PlanOptions options;
    options.policy.carrier = Carrier::F32;
    return options;
  }

  TinyFolder folder_;
  std::unique_ptr<Device> device_;
  Engine engine_;
};

TEST(Calibrate, GivesTheLargestInputOfEveryLinearLayer) {
  Calibration run(tiny_model(small()));
  const std::vector<float> amax = run.amax(some_tokens(20));
  ASSERT_EQ(amax.size(), kLinears);
  EXPECT_THAT(amax, Each(Gt(0.0F)));
  for (size_t layer = 0; layer < 2; ++layer) {
    const float* of = amax.data() + 7 * layer;
    EXPECT_EQ(of[0], of[1]) << "q and k take the same input";
    EXPECT_EQ(of[0], of[2]) << "q and v take the same input";
    EXPECT_EQ(of[4], of[5]) << "gate and up take the same input";
  }
}

TEST(Calibrate, MeasuresTheNormOfTheEmbeddingAtTheFirstLayer) {
  const TinyCheckpoint checkpoint = tiny_model(small());
  const std::vector<int32_t> tokens = some_tokens(12);
  const std::vector<double>& table = checkpoint.values("model.embed_tokens.weight");
  const std::vector<double>& weight = checkpoint.values("model.layers.0.input_layernorm.weight");
  double largest = 0;
  for (const int32_t token : tokens) {
    const double* row = table.data() + token * kHidden;
    const double squares = std::inner_product(row, row + kHidden, row, 0.0);
    const double factor = 1 / std::sqrt(squares / kHidden + 1e-5);
    for (int64_t i = 0; i < kHidden; ++i)
      largest = std::max(largest, std::fabs(row[i] * factor * weight[static_cast<size_t>(i)]));
  }
  Calibration run(checkpoint);
  EXPECT_NEAR(run.amax(tokens)[0], largest, 1e-5 * largest);
}

TEST(Calibrate, KeepsTheLargestOfAllWindows) {
  const std::vector<int32_t> tokens = some_tokens(23);
  Calibration whole(tiny_model(small()));
  const std::vector<float> together = whole.amax(tokens, 8);
  std::vector<float> apart(kLinears, 0.0F);
  for (size_t begin = 0; begin < tokens.size(); begin += 8) {
    const auto first = tokens.begin() + static_cast<int64_t>(begin);
    const auto last = tokens.begin() + static_cast<int64_t>(std::min(begin + 8, tokens.size()));
    Calibration one(tiny_model(small()));
    const std::vector<float> amax = one.amax({first, last});
    for (size_t i = 0; i < kLinears - 1; ++i) apart[i] = std::max(apart[i], amax[i]);
  }
  for (size_t i = 0; i < kLinears - 1; ++i) EXPECT_EQ(together[i], apart[i]) << "layer " << i;
}

TEST(Calibrate, ReportsProgressUpToTheWholeText) {
  Calibration run(tiny_model(small()));
  run.amax(some_tokens(20), 8);
  ASSERT_FALSE(run.progress.empty());
  EXPECT_TRUE(std::is_sorted(run.progress.begin(), run.progress.end()));
  EXPECT_EQ(run.progress.back(), 20);
}

TEST(Calibrate, TakesTextsLongerThanTheContextInWindowsThatFit) {
  Calibration run(tiny_model(small()));
  EXPECT_EQ(run.amax(some_tokens(150), 100000).size(), kLinears);  // the context has 64 tokens
  EXPECT_EQ(run.progress.back(), 150);
}

TEST(Calibrate, RefusesATextWithoutTokens) {
  Calibration run(tiny_model(small()));
  try {
    run.amax({});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::BadInput);
    EXPECT_THAT(e.message(), HasSubstr("no tokens"));
  }
}

TEST(Calibrate, StopsAtValuesThatAreNotFinite) {
  TinyCheckpoint checkpoint = tiny_model(small());
  const std::string norm = "model.layers.1.input_layernorm.weight";
  checkpoint.remove(norm);
  checkpoint.add_values(norm, DType::BF16, Shape{kHidden},
                        std::vector<float>(kHidden, std::numeric_limits<float>::quiet_NaN()));
  Calibration run(checkpoint);
  try {
    run.amax(some_tokens(9));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::Environment);
    EXPECT_THAT(e.message(), HasSubstr("not finite"));
  }
}

}  // namespace
}  // namespace octet
