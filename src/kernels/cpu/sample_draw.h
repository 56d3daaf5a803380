#pragma once
// How one row is drawn, shared by the sampling kernels of the CPU; they differ in how they find the
// best token and add up the weights. Baseline code: included outside ISA regions.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/sample_order.h"
#include "op/sample.h"

namespace octet::cpu {

// The weight of a token before normalisation: exp((logit - largest) / temperature). The best tokens
// have 1 even when their logit is infinite; NaN has 0.
inline double sample_weight(float logit, float largest, float temperature) {
  if (logit == largest) return 1;
  const double weight = std::exp((double{logit} - double{largest}) / double{temperature});
  return std::isnan(weight) ? 0 : weight;
}

// Tokens in order, sorted only as far as they are looked at: the first few decide nearly always.
class Ranking {
 public:
  // `ids` [vocab] is filled here. Tokens whose logit is at least `bar` are sorted first; the others
  // are not even listed before they are needed.
  Ranking(const float* logits, int64_t vocab, int32_t* ids, float bar)
      : better_{logits}, ids_(ids), size_(vocab), bar_(bar) {
    for (int64_t i = 0; i < vocab; ++i) {
      if (is_near(i)) ids[near_++] = static_cast<int32_t>(i);
    }
    listed_ = near_;
  }

  // The token at `rank`, 0 for the best. Requires rank < vocab.
  int32_t operator[](int64_t rank) {
    while (rank >= sorted_) extend();
    return ids_[rank];
  }

 private:
  bool is_near(int64_t id) const { return better_.logits[id] >= bar_; }

  // Sorts the next stretch, four times as long as what is sorted.
  void extend() {
    if (sorted_ == listed_) {
      for (int64_t i = 0; i < size_; ++i) {
        if (!is_near(i)) ids_[listed_++] = static_cast<int32_t>(i);
      }
    }
    const int64_t limit = sorted_ < near_ ? near_ : size_;
    const int64_t end = std::min(limit, std::max<int64_t>(64, 4 * sorted_));
    if (end < limit) std::nth_element(ids_ + sorted_, ids_ + end, ids_ + limit, better_);
    std::sort(ids_ + sorted_, ids_ + end, better_);
    sorted_ = end;
  }

  Better better_;
  int32_t* ids_;
  int64_t size_;
  float bar_;
  int64_t near_ = 0;    // ids_[0, near_) come before all others
  int64_t listed_ = 0;  // near_, then size_
  int64_t sorted_ = 0;
};

// logits [vocab] are changed for the tokens seen, each once however often it was seen.
inline void penalise(const Sample::Args& args, int64_t row, float* logits) {
  const SampleParams& params = args.params[row];
  const float* source = args.logits + row * args.vocab;
  for (int64_t i = params.history_begin; i < params.history_end; ++i) {
    const int64_t id = args.history[i];
    if (id < 0 || id >= args.vocab) continue;
    const float logit = source[id];
    logits[id] = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
  }
}

// One token of the distribution of `logits` (penalised) whose best token is `best`.
// `add_up(largest)` returns the sum of sample_weight over the whole vocabulary.
template <class Sum>
int32_t draw(const SampleParams& params, const float* logits, int64_t vocab, int32_t best,
             int32_t* ids, Sum add_up) {
  if (params.temperature == 0) return best;
  const float largest = logits[best];
  const auto weight = [&](int32_t id) {
    return sample_weight(logits[id], largest, params.temperature);
  };
  // 12: each token beyond has less than exp(-12) = 6e-6 of the best one's weight, so few draws get
  // there.
  Ranking ranking(logits, vocab, ids, largest - 12 * params.temperature);
  int64_t kept = params.top_k > 0 ? std::min<int64_t>(params.top_k, vocab) : vocab;
  double total = 0;
  if (kept == vocab) {
    total = add_up(largest);
  } else {
    for (int64_t i = 0; i < kept; ++i) total += weight(ranking[i]);
  }
  if (params.top_p < 1 || params.min_p > 0) {
    const double enough = params.top_p < 1 ? double{params.top_p} * total : total;
    double sum = 0;
    int64_t count = 0;
    while (count < kept && (count == 0 || params.top_p >= 1 || sum < enough)) {
      const double next = weight(ranking[count]);
      if (count > 0 && next < double{params.min_p}) break;
      sum += next;
      ++count;
    }
    kept = count;
    total = sum;
  }
  // 53 bits make a uniform number in [0, 1).
  const double target = static_cast<double>(params.random >> 11) * 0x1p-53 * total;
  double sum = 0;
  int32_t chosen = best;
  for (int64_t i = 0; i < kept; ++i) {
    const double next = weight(ranking[i]);
    if (next == 0) break;
    chosen = ranking[i];
    sum += next;
    if (sum > target) break;
  }
  return chosen;
}

}  // namespace octet::cpu
