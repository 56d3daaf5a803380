// The FP8 forms with quantised activations against transformers and llm-compressor, every rounding
// of an activation that is not certain being decided by the golden file
// (tools/golden_roundings.py).
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <numeric>

#include "tests/models/decided_roundings.h"
#include "tests/models/golden.h"
#include "tests/models/smollm2.h"

namespace octet {
namespace {

constexpr double kNll = 0.002;
constexpr double kLogprob = 0.02;
constexpr double kGap = 0.05;
constexpr size_t kInputsPerLayer = 4;  // q with k and v, o, gate with up, down

const nlohmann::json& golden() {
  static const auto kGolden = read_golden("testing/data/smollm2/roundings.json");
  return kGolden;
}

// Every instruction set of this machine but the readable reference, which is slow.
std::vector<std::string> isas() {
  auto found = available_isas();
  if (found.size() > 1) found.erase(found.begin());
  return found;
}

class DecidedForms : public ::testing::TestWithParam<std::string> {
 protected:
  Prepared prepare_forced(const DeviceInfo& info) const {
    PlanOptions options;
    options.policy.carrier = Carrier::F32;
    options.max_model_len = 256;
    Prepared prepared = prepare(smollm2(GetParam()), false, info, options);
    force_roundings(prepared);
    return prepared;
  }

  // The text's, then one per prompt.
  std::vector<DecidedSequence> roundings(const Prepared& prepared) const {
    return read_roundings(fmt::format("testing/data/smollm2/roundings-{}.bin", GetParam()),
                          kInputsPerLayer * static_cast<size_t>(prepared.config.dims.layers));
  }

  const nlohmann::json& expected() const { return golden()["forms"][GetParam()]; }
};

// Most listed codes are what the model rounds to by itself: the list is of what might differ.
void expect_few_changes(const RoundingCounts& counts) {
  EXPECT_EQ(counts.far, 0);
  EXPECT_GT(counts.seen, 0);
  EXPECT_LT(counts.changed, counts.seen / 4);
}

TEST_P(DecidedForms, NllAndTopTokensAgreeInFloat32) {
  const auto ids = golden()["ids"].get<std::vector<int32_t>>();
  std::vector<int32_t> positions(ids.size());
  std::iota(positions.begin(), positions.end(), 0);
  for (const std::string& isa : isas()) {
    const DeviceInfo info = test_device(isa);
    Prepared prepared = prepare_forced(info);
    use_roundings(roundings(prepared)[0]);
    const auto logprobs = logprobs_at(positions, std::move(prepared), ids, info);
    expect_few_changes(rounding_counts());
    double nll = 0;
    for (size_t i = 1; i < ids.size(); ++i)
      nll -= logprobs[i - 1][static_cast<size_t>(ids[i])] / static_cast<double>(ids.size() - 1);
    EXPECT_NEAR(nll, expected()["text"]["nll"].get<double>(), kNll) << isa;
    for (size_t i = 0; i < ids.size(); ++i) {
      for (const auto& entry : expected()["text"]["top"][i]) {
        EXPECT_NEAR(logprobs[i][entry[0].get<size_t>()], entry[1].get<double>(), kLogprob)
            << isa << ", position " << i << ", token " << entry[0];
      }
    }
  }
}

TEST_P(DecidedForms, GreedyTokensAgreeInFloat32) {
  const DeviceInfo info = test_device(isas().back());
  Prepared prepared = prepare_forced(info);
  const auto decided = roundings(prepared);
  const auto device = make_cpu_device(info, info.threads);
  Engine engine(std::move(prepared), *device);
  for (size_t p = 0; p < golden()["prompts"].size(); ++p) {
    use_roundings(decided[p + 1]);
    const auto tokens = expected()["prompts"][p]["tokens"].get<std::vector<int32_t>>();
    const auto gaps = expected()["prompts"][p]["gaps"].get<std::vector<double>>();
    const auto ours = greedy(engine, golden()["prompts"][p].get<std::vector<int32_t>>(),
                             static_cast<int64_t>(tokens.size()));
    ASSERT_EQ(ours.size(), tokens.size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (ours[i] == tokens[i]) continue;
      EXPECT_LT(gaps[i], kGap) << "prompt " << p << ", token " << i << ": ours " << ours[i]
                               << ", theirs " << tokens[i];
      break;  // what follows another token cannot be compared
    }
    expect_few_changes(rounding_counts());
  }
}

INSTANTIATE_TEST_SUITE_P(SmolLm2, DecidedForms,
                         ::testing::Values("fp8-dynamic", "fp8-block", "fp8-static"));

}  // namespace
}  // namespace octet
