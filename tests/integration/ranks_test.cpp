// Two and more ranks inside one process: shares of a model that add up to the whole.
#include <gtest/gtest.h>

#include "tests/integration/rank_rig.h"
#include "tests/integration/rig.h"
#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

using Rows = RankRows;

const std::vector<int32_t> kIds{17, 3, 250, 99, 8, 1, 64, 311, 5, 180, 77};

Rows alone(const std::filesystem::path& path, std::optional<SchemeId> prefer) {
  return run_alone(path, kIds, prefer);
}

Rows together(const std::filesystem::path& path, int ranks, std::optional<SchemeId> prefer) {
  return run_ranks(path, kIds, ranks, prefer);
}

TinyModel cut_model(LayerQuant quant) {
  // 384 columns of down_proj by two ranks: 192, one and a half blocks of 128.
  TinyModel model;
  model.quant = quant;
  return model;
}

struct RankCase {
  const char* name;
  LayerQuant quant;
  std::optional<SchemeId> prefer;
};

class Ranks : public ::testing::TestWithParam<RankCase> {};

// Only the order of float32 sums differs: about sqrt(384) * 2^-24 of values near 1 in two layers
// and a head, with room for growth through the layers.
constexpr double kReordered = 1e-4;

TEST_P(Ranks, AddUpToTheWholeModel) {
  const TinyFolder folder;
  tiny_model(cut_model(GetParam().quant)).write(folder.path());
  const Rows whole = alone(folder.path(), GetParam().prefer);
  for (const int ranks : {1, 2}) {
    EXPECT_LT(largest_difference(together(folder.path(), ranks, GetParam().prefer), whole),
              kReordered)
        << ranks << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, Ranks,
    ::testing::Values(
        RankCase{"Plain", tiny_plain(), {}}, RankCase{"WeightOnly", tiny_fp8_weight_only(), {}},
        RankCase{"BlocksCutBySplit", tiny_fp8_block(), SchemeId::W8A16},
        RankCase{"BlocksThatDivideNothing", tiny_fp8_weight_only(ScaleTile::block(48, 80)), {}},
        RankCase{"StaticInputs", tiny_fp8_static(), SchemeId::W8A8},
        RankCase{"GroupsThatFit", tiny_fp8_block(64, 64), SchemeId::W8A8}),
    [](const auto& test) { return test.param.name; });

TEST(RanksWithDynamicInputs, DifferByLessThanQuantisingDoes) {
  // A rank scales its own share of o_proj's and down_proj's input, as vLLM's ranks do.
  for (const LayerQuant& quant : {tiny_fp8_dynamic(), tiny_fp8_block()}) {
    const TinyFolder folder;
    tiny_model(cut_model(quant)).write(folder.path());
    const Rows whole = alone(folder.path(), SchemeId::W8A8);
    const double quantising = largest_difference(alone(folder.path(), SchemeId::W8A16), whole);
    EXPECT_GT(quantising, kReordered);
    EXPECT_LT(largest_difference(together(folder.path(), 2, SchemeId::W8A8), whole), quantising);
  }
}

TEST(RankShares, BiasCountsOnceWhereSumsAreAdded) {
  const TinyFolder folder;
  TinyModel model = cut_model(tiny_plain());
  model.qkv_bias = true;  // Llama's attention_bias: o_proj has one too
  tiny_model(model).write(folder.path());
  const Rows whole = alone(folder.path(), {});
  EXPECT_LT(largest_difference(together(folder.path(), 2, {}), whole), kReordered);
}

TEST(RankShares, TiedHeadsAndHeadNormsAreShared) {
  const TinyFolder folder;
  TinyModel model = cut_model(tiny_plain());
  model.architecture = "Qwen3ForCausalLM";
  model.model_type = "qwen3";
  model.qk_norm = true;
  model.tied = true;
  tiny_model(model).write(folder.path());
  const Rows whole = alone(folder.path(), {});
  EXPECT_LT(largest_difference(together(folder.path(), 2, {}), whole), kReordered);
}

}  // namespace
}  // namespace octet
