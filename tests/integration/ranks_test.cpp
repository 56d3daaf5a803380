// Two and more ranks inside one process: shares of a model that add up to the whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <functional>
#include <thread>

#include "tests/integration/rig.h"
#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

// What the ranks of one group share. The sum has the order of ranks, so every rank gets the same
// bits.
class Group {
 public:
  explicit Group(int size) : parts_(static_cast<size_t>(size)), barrier_(size) {}

  int size() const { return static_cast<int>(parts_.size()); }
  void meet() { barrier_.arrive_and_wait(); }
  // Every rank brings a part; `use` sees all of them.
  void exchange(int rank, const float* data, int64_t count,
                const std::function<void(const std::vector<std::vector<float>>&)>& use) {
    parts_[static_cast<size_t>(rank)].assign(data, data + count);
    meet();
    use(parts_);
    meet();
  }

 private:
  std::vector<std::vector<float>> parts_;
  std::barrier<> barrier_;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(Group& group, int rank) : group_(group), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return group_.size(); }
  void all_reduce_sum(float* data, int64_t count, Stream&) override {
    group_.exchange(rank_, data, count, [&](const auto& parts) {
      for (int64_t i = 0; i < count; ++i) {
        float sum = 0;
        for (const auto& part : parts) sum += part[static_cast<size_t>(i)];
        data[i] = sum;
      }
    });
  }
  void all_gather(const float* src, float* dst, int64_t rows, int64_t count, Stream&) override {
    group_.exchange(rank_, src, rows * count, [&](const auto& parts) {
      for (int64_t r = 0; r < rows; ++r) {
        for (const auto& part : parts) {
          dst = std::copy_n(part.begin() + r * count, count, dst);
        }
      }
    });
  }
  void broadcast(float* data, int64_t count, int root, Stream&) override {
    group_.exchange(rank_, data, count, [&](const auto& parts) {
      std::copy_n(parts[static_cast<size_t>(root)].begin(), count, data);
    });
  }
  void barrier() override { group_.meet(); }

 private:
  Group& group_;
  int rank_;
};

using Rows = std::vector<std::vector<float>>;

const std::vector<int32_t> kIds{17, 3, 250, 99, 8, 1, 64, 311, 5, 180, 77};

Rows alone(const std::filesystem::path& path, std::optional<SchemeId> prefer) {
  const auto device = make_cpu_device(here(), 1);
  const auto self = make_self_communicator();
  PlanOptions options = exact_options();
  options.policy.prefer = prefer;
  Rig rig(path, *device, *self, std::move(options));
  const StepResult result = rig.decoder->forward(scoring_batch(kIds, rig.model->plan));
  return rows_by_id(result, static_cast<size_t>(rig.model->config.dims.vocab));
}

// Every rank on a thread of its own; all must give the same rows, which are returned.
Rows together(const std::filesystem::path& path, int ranks, std::optional<SchemeId> prefer) {
  Group group(ranks);
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::unique_ptr<Communicator>> ends;
  std::vector<std::unique_ptr<Rig>> rigs;
  for (int rank = 0; rank < ranks; ++rank) {
    devices.push_back(make_cpu_device(here(), 1));
    ends.push_back(std::make_unique<ThreadCommunicator>(group, rank));
    PlanOptions options = exact_options(ranks, rank);
    options.policy.prefer = prefer;
    rigs.push_back(std::make_unique<Rig>(path, *devices.back(), *ends.back(), std::move(options)));
  }
  std::vector<StepResult> results(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < results.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const Batch batch = scoring_batch(kIds, rigs[rank]->model->plan);
      results[rank] = rigs[rank]->decoder->forward(batch);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto vocab = static_cast<size_t>(rigs[0]->model->config.dims.vocab);
  const Rows rows = rows_by_id(results[0], vocab);
  for (const StepResult& result : results) EXPECT_EQ(rows_by_id(result, vocab), rows);
  return rows;
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
