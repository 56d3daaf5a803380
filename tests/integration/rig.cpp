#include "tests/integration/rig.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace octet {
namespace {

constexpr int32_t kBlocks = 4;

}  // namespace

DeviceInfo here() {
  DeviceInfo info = probe_cpu();
  info.threads = 2;
  return info;
}

PlanOptions exact_options(int ranks, int rank) {
  PlanOptions options;
  options.policy.carrier = Carrier::F32;
  options.ranks = ranks;
  options.rank = rank;
  options.max_batch_tokens = 64;
  return options;
}

Rig::Rig(const std::filesystem::path& path, Device& device, Communicator& communicator,
         PlanOptions options)
    : prepared(prepare(path, false, device.info(), std::move(options))),
      model(load(prepared.checkpoint, prepared.config, prepared.description, prepared.records,
                 std::move(prepared.plan), device)),
      cache(std::make_unique<KvCache>(model->plan.kv, kBlocks, device)),
      decoder(std::make_unique<Decoder>(model, *cache, communicator, device)) {}

Batch scoring_batch(std::span<const int32_t> ids, const ModelPlan& plan) {
  Batch batch;
  batch.tokens.assign(ids.begin(), ids.end());
  batch.positions.resize(ids.size());
  std::iota(batch.positions.begin(), batch.positions.end(), 0);
  batch.slots.assign(batch.positions.begin(), batch.positions.end());
  batch.logit_rows = batch.positions;
  batch.spans = {{0, static_cast<int32_t>(ids.size()), 0, 0}};
  batch.block_tables.resize(kBlocks);
  std::iota(batch.block_tables.begin(), batch.block_tables.end(), 0);
  batch.table_stride = kBlocks;
  batch.top_logprobs = plan.request.dims.vocab;
  return batch;
}

std::vector<std::vector<float>> rows_by_id(const StepResult& result, size_t vocab) {
  std::vector<std::vector<float>> rows(result.top_ids.size() / vocab, std::vector<float>(vocab));
  for (size_t i = 0; i < result.top_ids.size(); ++i)
    rows[i / vocab][static_cast<size_t>(result.top_ids[i])] = result.top_logprobs[i];
  return rows;
}

double largest_difference(const std::vector<std::vector<float>>& a,
                          const std::vector<std::vector<float>>& b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (size_t r = 0; r < std::min(a.size(), b.size()); ++r) {
    for (size_t i = 0; i < a[r].size(); ++i)
      largest = std::max(largest, std::fabs(static_cast<double>(a[r][i]) - b[r].at(i)));
  }
  return largest;
}

}  // namespace octet
