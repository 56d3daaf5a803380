// Tiny models of every architecture and every FP8 form against transformers (tools/golden_archs.py,
// tools/golden_fp8.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/models/golden.h"

namespace octet {
namespace {

constexpr const char* kFolders[] = {"testing/data/archs", "testing/data/fp8"};

std::vector<std::string> golden_models() {
  std::vector<std::string> models;
  for (const char* folder : kFolders) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      if (file.path().extension() == ".json")
        models.push_back((file.path().parent_path() / file.path().stem()).string());
    }
  }
  std::sort(models.begin(), models.end());
  return models;
}

// Requirement: logits agree within 1e-4 of their range with float32 carriers.
constexpr double kTolerance = 1e-4;

class TinyModel : public ::testing::TestWithParam<std::string> {};

TEST_P(TinyModel, LogitsAgreeWithTransformersOnEveryIsa) {
  const nlohmann::json golden = read_golden(GetParam() + ".json");
  const auto ids = golden["ids"].get<std::vector<int32_t>>();
  const std::vector<float> logits = floats_from_base64(golden["logits"]);
  const auto vocab = golden["shape"][1].get<size_t>();
  const double bound = kTolerance * golden["range"].get<double>();
  ASSERT_EQ(logits.size(), ids.size() * vocab);
  for (const std::string& isa : available_isas()) {
    const auto ours = all_logprobs(GetParam(), ids, test_device(isa), Carrier::F32);
    double worst = 0;
    for (size_t row = 0; row < ids.size(); ++row) {
      const std::vector<double> theirs = log_softmax(logits.data() + row * vocab, vocab);
      for (size_t token = 0; token < vocab; ++token) {
        const double difference = std::fabs(theirs[token] - static_cast<double>(ours[row][token]));
        worst = std::max(worst, difference);
        ASSERT_LE(difference, bound)
            << isa << ", position " << row << ", token " << token << ": ours " << ours[row][token]
            << ", transformers " << theirs[token];
      }
    }
    RecordProperty("worst_" + isa, std::to_string(worst / bound));
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = std::filesystem::path(info.param).filename().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Golden, TinyModel, ::testing::ValuesIn(golden_models()), test_name);

TEST(Architectures, EveryRegisteredOneHasAGolden) {
  std::set<std::string> proven;
  for (const std::string& model : golden_models())
    proven.insert(read_golden(model + ".json")["architecture"]);
  ASSERT_FALSE(architecture_names().empty());
  for (const std::string_view name : architecture_names()) {
    EXPECT_TRUE(proven.contains(std::string(name)))
        << name << " has no tiny model under testing/data/archs";
  }
}

}  // namespace
}  // namespace octet
