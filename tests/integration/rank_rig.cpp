#include "tests/integration/rank_rig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <functional>
#include <thread>

#include "tests/integration/rig.h"

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

}  // namespace

RankRows run_alone(const std::filesystem::path& path, std::span<const int32_t> ids,
                   std::optional<SchemeId> prefer) {
  const auto device = make_cpu_device(here(), 1);
  const auto self = make_self_communicator();
  PlanOptions options = exact_options();
  options.policy.prefer = prefer;
  Rig rig(path, *device, *self, std::move(options));
  const StepResult result = rig.decoder->forward(scoring_batch(ids, rig.model->plan));
  return rows_by_id(result, static_cast<size_t>(rig.model->config.dims.vocab));
}

RankRows run_ranks(const std::filesystem::path& path, std::span<const int32_t> ids, int ranks,
                   std::optional<SchemeId> prefer) {
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
      const Batch batch = scoring_batch(ids, rigs[rank]->model->plan);
      results[rank] = rigs[rank]->decoder->forward(batch);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto vocab = static_cast<size_t>(rigs[0]->model->config.dims.vocab);
  const RankRows rows = rows_by_id(results[0], vocab);
  for (const StepResult& result : results) EXPECT_EQ(rows_by_id(result, vocab), rows);
  return rows;
}

}  // namespace octet
