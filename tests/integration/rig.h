#pragma once
// One rank of a model inside the test: what an engine owns, with every part in reach.
#include <filesystem>
#include <memory>
#include <span>

#include "model/decoder.h"
#include "model/prepare.h"

namespace octet {

// This machine with two threads.
DeviceInfo here();

// Options with float32 carriers for `rank` of `ranks`.
PlanOptions exact_options(int ranks = 1, int rank = 0);

struct Rig {
  // `device` and `communicator` must outlive it.
  Rig(const std::filesystem::path& path, Device& device, Communicator& communicator,
      PlanOptions options);

  Prepared prepared;
  std::shared_ptr<const Model> model;
  std::unique_ptr<KvCache> cache;
  std::unique_ptr<Decoder> decoder;
};

// One sequence from its beginning, asking for every row's log-probabilities of the whole
// vocabulary.
Batch scoring_batch(std::span<const int32_t> ids, const ModelPlan& plan);

// Rows of log-probabilities by token id, from the result of scoring_batch().
std::vector<std::vector<float>> rows_by_id(const StepResult& result, size_t vocab);

// The largest absolute difference of two such tables.
double largest_difference(const std::vector<std::vector<float>>& a,
                          const std::vector<std::vector<float>>& b);

}  // namespace octet
