// From logits to tokens, of octet verify.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/split_mix.h"
#include "evaluate/verify_ops.h"
#include "model/batch.h"
#include "op/sample_reference.h"

namespace octet {
namespace {

constexpr int64_t kRows = 3;
constexpr int32_t kTag = 7;
constexpr int64_t kTop = 20;

// Logits of rows over the model's vocabulary.
class Logits {
 public:
  // Of the first three rows one is as it comes, one has many ties, of one the last token is the
  // best.
  Logits(const OpCheckScope& scope, int64_t rows)
      : vocab_(scope.model.plan.request.dims.vocab),
        values_(random_values(rows * vocab_, scope.seed)) {
    for (float& value : values_) value *= 4;
    for (int64_t i = 0; i < vocab_; ++i) {
      float& tied = values_[static_cast<size_t>(vocab_ + i)];
      tied = std::round(tied * 4) / 4;
    }
    const auto third = row(2);
    values_[static_cast<size_t>(3 * vocab_ - 1)] =
        *std::max_element(third.begin(), third.end()) + 0.5F;
  }

  int64_t vocab() const { return vocab_; }
  std::vector<float>& values() { return values_; }
  const std::vector<float>& values() const { return values_; }
  std::span<const float> row(int64_t row) const {
    return std::span(values_).subspan(static_cast<size_t>(row * vocab_),
                                      static_cast<size_t>(vocab_));
  }

 private:
  int64_t vocab_;
  std::vector<float> values_;
};

// Parameters that use each filter alone and together. The random number of a row with a filter is
// near 1: what is drawn is near the last token that the filter keeps.
std::vector<SampleParams> some_params(int32_t history, uint64_t seed) {
  std::vector<SampleParams> params{
      {},
      {.temperature = 0.7F, .top_k = 40},
      {.top_p = 0.9F},
      {.min_p = 0.05F},
      {.temperature = 0, .repetition_penalty = 1.5F, .history_end = history},
      {.temperature = 0.8F, .top_p = 0.95F, .repetition_penalty = 1.3F, .history_end = history},
      {.temperature = 1.3F, .top_k = 50, .top_p = 0.8F, .min_p = 0.02F},
      {.temperature = 0.3F},
  };
  constexpr uint64_t kNearOne = ~uint64_t{0} << 54;
  SplitMix64 random(seed);
  for (SampleParams& p : params) {
    const bool filtered = p.top_k > 0 || p.top_p < 1 || p.min_p > 0;
    p.random = random.bits() | (filtered ? kNearOne : 0);
  }
  return params;
}

// Tokens seen: the best of every row, and others.
std::vector<int32_t> some_history(const Logits& logits, int64_t rows, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<int32_t> ids;
  for (int64_t row = 0; row < rows; ++row) {
    const auto line = logits.row(row);
    ids.push_back(static_cast<int32_t>(std::max_element(line.begin(), line.end()) - line.begin()));
  }
  for (int i = 0; i < 64; ++i) ids.push_back(static_cast<int32_t>(random.below(logits.vocab())));
  return ids;
}

}  // namespace

OpCheck check_argmax(const OpCheckScope& scope, const Kernel<ArgMax>& kernel) {
  // The last row has a logit that is not finite.
  Logits logits(scope, kRows + 1);
  const int64_t vocab = logits.vocab();
  logits.values()[static_cast<size_t>(kRows * vocab + vocab / 2)] =
      -std::numeric_limits<float>::infinity();
  DeviceArrays arrays(scope);
  int32_t* out = arrays.up(std::vector<int32_t>(kRows + 1, -1));
  int32_t* flags = arrays.up(std::vector<int32_t>(kRows + 1, StepResult::kFinite));
  launch(kernel, ArgMax::Args{arrays.up(logits.values()), kRows + 1, vocab, out, flags, kTag},
         scope.stream);
  const std::vector<int32_t> ids = arrays.down(out, kRows + 1);
  const std::vector<int32_t> found = arrays.down(flags, kRows + 1);
  OpComparison comparison;
  for (int64_t row = 0; row <= kRows; ++row) {
    const auto line = logits.row(row);
    const auto best = std::max_element(line.begin(), line.end()) - line.begin();
    comparison.equal({"token", -1, row, 0}, ids[static_cast<size_t>(row)],
                     static_cast<double>(best));
    comparison.equal({"flag", -1, row, 0}, found[static_cast<size_t>(row)],
                     row == kRows ? kTag : StepResult::kFinite);
  }
  return std::move(comparison).result();
}

OpCheck check_topk(const OpCheckScope& scope, const Kernel<TopK>& kernel) {
  const Logits logits(scope, kRows);
  const int64_t k = std::min(kTop, logits.vocab());
  const auto count = static_cast<size_t>(kRows * k);
  DeviceArrays arrays(scope);
  auto* ids = arrays.up(std::vector<int32_t>(count, -1));
  auto* logprobs = arrays.up(std::vector<float>(count, 1));
  launch(kernel, TopK::Args{arrays.up(logits.values()), kRows, logits.vocab(), k, ids, logprobs},
         scope.stream);
  const std::vector<int32_t> got_ids = arrays.down(ids, count);
  const std::vector<float> got = arrays.down(logprobs, count);
  OpComparison comparison;
  for (int64_t row = 0; row < kRows; ++row) {
    const auto line = logits.row(row);
    const std::vector<int32_t> order = ranked_tokens(line);
    const double norm = log_sum_exp(line);
    for (int64_t i = 0; i < k; ++i) {
      const auto at = static_cast<size_t>(row * k + i);
      const int32_t id = order[static_cast<size_t>(i)];
      comparison.equal({"token", -1, row, i}, got_ids[at], id);
      comparison.compare({"log-probability", -1, row, i}, got[at],
                         logprob_reference(line[static_cast<size_t>(id)], norm));
    }
  }
  return std::move(comparison).result();
}

OpCheck check_logprob(const OpCheckScope& scope, const Kernel<LogProb>& kernel) {
  const Logits logits(scope, kRows);
  SplitMix64 random(scope.seed);
  OpComparison comparison;
  for (int turn = 0; turn < 4; ++turn) {
    // The last token, then any.
    std::vector<int32_t> ids(kRows, static_cast<int32_t>(logits.vocab() - 1));
    for (int32_t& id : ids) {
      if (turn > 0) id = static_cast<int32_t>(random.below(logits.vocab()));
    }
    DeviceArrays arrays(scope);
    auto* out = static_cast<float*>(arrays.bytes(kRows * sizeof(float)));
    launch(kernel,
           LogProb::Args{arrays.up(logits.values()), kRows, logits.vocab(), arrays.up(ids), out},
           scope.stream);
    const std::vector<float> got = arrays.down(out, kRows);
    for (int64_t row = 0; row < kRows; ++row) {
      const auto line = logits.row(row);
      const int32_t id = ids[static_cast<size_t>(row)];
      comparison.compare({"log-probability", -1, row, id}, got[static_cast<size_t>(row)],
                         logprob_reference(line[static_cast<size_t>(id)], log_sum_exp(line)));
    }
  }
  return std::move(comparison).result();
}

OpCheck check_sample(const OpCheckScope& scope, const Kernel<Sample>& kernel) {
  constexpr int64_t kDrawn = 8;
  const Logits logits(scope, kDrawn);
  const std::vector<int32_t> history = some_history(logits, kDrawn, scope.seed);
  const std::vector<SampleParams> params =
      some_params(static_cast<int32_t>(history.size()), scope.seed);
  DeviceArrays arrays(scope);
  int32_t* out = arrays.up(std::vector<int32_t>(params.size(), -1));
  auto* scratch = static_cast<float*>(arrays.bytes(2 * logits.values().size() * sizeof(float)));
  launch(kernel,
         Sample::Args{arrays.up(logits.values()), kDrawn, logits.vocab(), arrays.up(params),
                      arrays.up(history), out, scratch},
         scope.stream);
  const std::vector<int32_t> drawn = arrays.down(out, params.size());
  std::vector<std::vector<int32_t>> admitted(params.size());
  scope.pool.parallel_for(kDrawn, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto at = static_cast<size_t>(row);
      admitted[at] = sample_reference(logits.row(row), params[at], history);
    }
  });
  OpComparison comparison;
  for (size_t row = 0; row < params.size(); ++row) {
    const auto& tokens = admitted[row];
    const bool right = std::find(tokens.begin(), tokens.end(), drawn[row]) != tokens.end();
    comparison.equal({"token", -1, static_cast<int64_t>(row), 0}, drawn[row],
                     right ? drawn[row] : tokens.front());
  }
  return std::move(comparison).result();
}

}  // namespace octet
