#include "op/sample_reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace octet {
namespace {

// The candidates of a row in order, with sums over the first n of them, n from 0 on.
struct Ladder {
  std::vector<double> weight;  // exp((logit - best) / temperature)
  std::vector<double> error;   // the most that a kernel's weight may differ
  std::vector<double> weights, errors;
};

// A float32 weight: two roundings of its argument, and exp() to 4 units of 2^-24.
Ladder ladder_of(std::span<const float> logits, const std::vector<int32_t>& order,
                 double temperature) {
  Ladder ladder;
  ladder.weights = ladder.errors = {0};
  const double best = logits[static_cast<size_t>(order.front())];
  for (const int32_t id : order) {
    const double argument = (logits[static_cast<size_t>(id)] - best) / temperature;
    ladder.weight.push_back(std::exp(argument));
    ladder.error.push_back(
        argument == 0 ? 0 : ladder.weight.back() * (4 - 2 * argument) * 0x1p-24 + 0x1p-126);
    ladder.weights.push_back(ladder.weights.back() + ladder.weight.back());
    ladder.errors.push_back(ladder.errors.back() + ladder.error.back());
  }
  return ladder;
}

std::vector<float> penalised(std::span<const float> logits, const SampleParams& params,
                             std::span<const int32_t> history) {
  std::vector<float> out(logits.begin(), logits.end());
  for (int32_t i = params.history_begin; i < params.history_end; ++i) {
    const int32_t id = history[static_cast<size_t>(i)];
    if (id < 0 || static_cast<size_t>(id) >= logits.size()) continue;
    const auto at = static_cast<size_t>(id);
    const float logit = logits[at];
    out[at] = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
  }
  return out;
}

// How many of the best tokens the filters keep: at least `fewest`, at most `most`.
struct Kept {
  size_t fewest, most;
};

Kept kept(const Ladder& ladder, const SampleParams& params) {
  size_t all = ladder.weight.size();
  if (params.top_k > 0) all = std::min(all, static_cast<size_t>(params.top_k));
  Kept n{all, all};
  if (params.top_p < 1) {
    const double enough = double{params.top_p} * ladder.weights[all];
    const double slack = double{params.top_p} * ladder.errors[all];
    const auto reaching = [&](double sign) {
      size_t count = 1;
      while (count < all &&
             ladder.weights[count] + sign * (ladder.errors[count] + slack) < enough) {
        ++count;
      }
      return count;
    };
    n = {reaching(1), reaching(-1)};
  }
  if (params.min_p > 0) {
    const auto above = [&](size_t most, double sign) {
      size_t count = 1;
      while (count < most &&
             ladder.weight[count] + sign * ladder.error[count] >= double{params.min_p}) {
        ++count;
      }
      return count;
    };
    n = {above(n.fewest, -1), above(n.most, 1)};
  }
  return n;
}

}  // namespace

std::vector<int32_t> ranked_tokens(std::span<const float> logits) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  return ids;
}

double log_sum_exp(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

Expected logprob_reference(float logit, double log_sum_exp) {
  const double value = logit - log_sum_exp;
  // A double sum of exponentials that are right to 2^-21, and the rounding of the result.
  return {value, 0x1p-21 + std::fabs(value) * 0x1p-24};
}

std::vector<int32_t> sample_reference(std::span<const float> logits, const SampleParams& params,
                                      std::span<const int32_t> history) {
  const std::vector<float> row = penalised(logits, params, history);
  const std::vector<int32_t> order = ranked_tokens(row);
  if (params.temperature == 0) return {order.front()};
  const Ladder ladder = ladder_of(row, order, double{params.temperature});
  const Kept n = kept(ladder, params);
  const double place = static_cast<double>(params.random >> 11) * 0x1p-53;
  // Both the sum before a token and the sum of all may be off.
  const double low = place * ladder.weights[n.fewest] - 2 * ladder.errors[n.fewest];
  const double high = place * ladder.weights[n.most] + 2 * ladder.errors[n.most];
  std::vector<int32_t> admitted;
  for (size_t i = 0; i < n.most; ++i) {
    if (ladder.weights[i] <= high && ladder.weights[i + 1] > low) admitted.push_back(order[i]);
  }
  return admitted;
}

}  // namespace octet
