// SmolLM2 on an OpenCL device against the CPU, with the same quantisation. The device is the first
// one of the runtime that the environment names.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "device/opencl.h"
#include "evaluate/perplexity.h"
#include "evaluate/verify.h"
#include "tests/models/decided_roundings.h"
#include "tests/models/golden.h"
#include "tests/models/smollm2.h"

namespace octet {
namespace {

using Json = nlohmann::json;

// Bounds of NLL, and of the gap between the two best tokens where another one may win
// (docs/NUMERICS.md).
constexpr double kNll = 0.002;
constexpr double kGap = 0.05;

const Json& golden() {
  static const Json kGolden = read_golden("testing/data/smollm2/golden.json");
  return kGolden;
}

// The golden text up to where a slow runtime gets in a few seconds.
std::vector<int32_t> text_ids() {
  auto ids = golden()["ids"].get<std::vector<int32_t>>();
  ids.resize(std::min<size_t>(ids.size(), 200));
  return ids;
}

std::unique_ptr<OpenClDevice> open() {
  return make_opencl_device(0, std::filesystem::temp_directory_path() / "octet-opencl-tests");
}

Prepared prepared(const std::filesystem::path& path, const DeviceInfo& info,
                  std::optional<SchemeId> prefer) {
  PlanOptions options;
  options.policy.carrier = Carrier::F32;
  options.policy.prefer = prefer;
  options.max_model_len = 1024;
  return prepare(path, false, info, options);
}

// What an engine makes of the text and of the prompts.
struct Answers {
  double nll = 0;
  std::vector<std::vector<int32_t>> tokens;
};

Answers answers(Engine& engine, int64_t count) {
  Answers a;
  a.nll = perplexity(engine, text_ids(), {}).nll;
  const auto prompts = golden()["prompts"];
  for (size_t p = 0; p < prompts.size(); ++p)
    a.tokens.push_back(greedy(engine, prompts[p]["ids"].get<std::vector<int32_t>>(), count));
  return a;
}

// The gap between the two best log-probabilities after a prompt and some tokens.
double gap_after(const std::filesystem::path& path, const DeviceInfo& info,
                 const std::vector<int32_t>& ids, std::optional<SchemeId> prefer) {
  const auto last = static_cast<int32_t>(ids.size() - 1);
  auto row = logprobs_at({last}, prepared(path, info, prefer), ids, info).front();
  std::partial_sort(row.begin(), row.begin() + 2, row.end(), std::greater<>());
  return row[0] - row[1];
}

class OpenClForms : public ::testing::TestWithParam<const char*> {};

// W8A16, which rounds nothing at run time: comparable throughout.
TEST_P(OpenClForms, AnswersAsTheCpuDoes) {
  constexpr int64_t kTokens = 24;
  const std::filesystem::path path = smollm2(GetParam());
  const DeviceInfo cpu_info = test_device("avx512");
  const auto cpu = make_cpu_device(cpu_info, cpu_info.threads);
  Engine cpu_engine(prepared(path, cpu_info, SchemeId::W8A16), *cpu);
  const auto device = open();
  Engine engine(prepared(path, device->info(), SchemeId::W8A16), *device);
  for (const PlannedLayers& group : engine.plan().layers)
    EXPECT_THAT(std::string(group.resolution.kernel()->name), ::testing::StartsWith("opencl."));
  const Answers expected = answers(cpu_engine, kTokens);
  const Answers got = answers(engine, kTokens);
  EXPECT_NEAR(got.nll, expected.nll, kNll);
  const auto prompts = golden()["prompts"];
  for (size_t p = 0; p < prompts.size(); ++p) {
    auto ids = prompts[p]["ids"].get<std::vector<int32_t>>();
    for (size_t i = 0; i < got.tokens[p].size(); ++i) {
      if (got.tokens[p][i] != expected.tokens[p][i]) {
        EXPECT_LT(gap_after(path, cpu_info, ids, SchemeId::W8A16), kGap)
            << "prompt " << p << ", token " << i;
        break;  // what follows another token cannot be compared
      }
      ids.push_back(got.tokens[p][i]);
    }
  }
}

TEST_P(OpenClForms, EveryKernelOfThePlanIsRight) {
  const auto device = open();
  const Prepared model = prepared(smollm2(GetParam()), device->info(), std::nullopt);
  const Verification result = verify(model, *device, {}, [](uint64_t) {});
  for (const QuarantineEntry& failure : result.failures)
    ADD_FAILURE() << failure.kernel << ": " << failure.reason;
  EXPECT_TRUE(result.passed());
}

INSTANTIATE_TEST_SUITE_P(Forms, OpenClForms,
                         ::testing::Values("fp8-dynamic", "fp8-block", "fp8-static",
                                           "fp8-weight-only"));

// W8A8 rounds activations to codes, which makes the model a step function. Where every rounding
// that is not certain is decided by the golden file, it is comparable throughout
// (tests/models/smollm2_roundings_test.cpp).
class OpenClDecidedForms : public ::testing::TestWithParam<const char*> {
 protected:
  Prepared forced(const DeviceInfo& info) const {
    Prepared model = prepared(smollm2(GetParam()), info, SchemeId::W8A8);
    force_roundings(model);
    return model;
  }
};

TEST_P(OpenClDecidedForms, AnswerAsTheCpuDoes) {
  constexpr size_t kInputsPerLayer = 4;  // q with k and v, o, gate with up, down
  const Json decisions = read_golden("testing/data/smollm2/roundings.json");
  const auto ids = decisions["ids"].get<std::vector<int32_t>>();
  const DeviceInfo cpu_info = test_device("avx512");
  Prepared cpu_model = forced(cpu_info);
  const auto roundings =
      read_roundings(fmt::format("testing/data/smollm2/roundings-{}.bin", GetParam()),
                     kInputsPerLayer * static_cast<size_t>(cpu_model.config.dims.layers));
  const auto cpu = make_cpu_device(cpu_info, cpu_info.threads);
  Engine cpu_engine(std::move(cpu_model), *cpu);
  use_roundings(roundings[0]);
  const double expected = perplexity(cpu_engine, ids, {}).nll;

  const auto device = open();
  Engine engine(forced(device->info()), *device);
  use_roundings(roundings[0]);
  EXPECT_NEAR(perplexity(engine, ids, {}).nll, expected, kNll);
  const RoundingCounts counts = rounding_counts();
  EXPECT_EQ(counts.far, 0);
  EXPECT_GT(counts.seen, 0);
  EXPECT_LT(counts.changed, counts.seen / 4);

  const Json form = decisions["forms"][GetParam()];
  for (size_t p = 0; p < decisions["prompts"].size(); ++p) {
    use_roundings(roundings[p + 1]);
    const auto tokens = form["prompts"][p]["tokens"].get<std::vector<int32_t>>();
    const auto gaps = form["prompts"][p]["gaps"].get<std::vector<double>>();
    const auto ours = greedy(engine, decisions["prompts"][p].get<std::vector<int32_t>>(),
                             static_cast<int64_t>(tokens.size()));
    ASSERT_EQ(ours.size(), tokens.size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (ours[i] == tokens[i]) continue;
      EXPECT_LT(gaps[i], kGap) << "prompt " << p << ", token " << i;
      break;  // what follows another token cannot be compared
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, OpenClDecidedForms,
                         ::testing::Values("fp8-dynamic", "fp8-block", "fp8-static"));

TEST(OpenCl, WaitsOncePerToken) {
  const auto device = open();
  Engine engine(prepared(smollm2("fp8-dynamic"), device->info(), std::nullopt), *device);
  Request request;
  request.prompt = {1, 2, 3};
  request.max_tokens = 9;
  engine.submit(std::move(request));
  engine.step();  // the prompt and the first token
  const int64_t before = device->waits();
  int64_t steps = 0;
  for (; !engine.idle(); ++steps) engine.step();
  EXPECT_GE(steps, 8);
  EXPECT_LE(device->waits() - before, steps);
}

}  // namespace
}  // namespace octet
