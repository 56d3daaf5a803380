#pragma once
// From logits to tokens: arg-max, the k best with log-probabilities, the log-probability of given
// tokens, and sampling. Ties always go to the lower id, so results depend on neither threads nor
// batch.
#include "op/catalog.h"

namespace octet {

// out[r] = the id of the largest logit of row r. Also marks rows whose logits are not all finite.
struct ArgMax {
  static constexpr std::string_view kName = "argmax";
  struct Problem {};
  struct Caps {};
  struct Args {
    const float* logits = nullptr;  // [rows, vocab], dense
    int64_t rows = 0;
    int64_t vocab = 0;
    int32_t* out = nullptr;  // [rows]
    int32_t* not_finite =
        nullptr;  // [rows] or null: flag = min(flag, tag) when a logit is not finite
    int32_t tag = 0;
  };
};

// The k best tokens of each row, best first, with the log-probability under softmax(logits).
struct TopK {
  static constexpr std::string_view kName = "topk";
  struct Problem {};
  struct Caps {};
  struct Args {
    const float* logits = nullptr;  // [rows, vocab], dense
    int64_t rows = 0;
    int64_t vocab = 0;
    int64_t k = 0;              // <= vocab
    int32_t* ids = nullptr;     // [rows, k]
    float* logprobs = nullptr;  // [rows, k]
  };
};

// out[r] = log softmax(logits[r])[ids[r]]; the sum is taken in double.
struct LogProb {
  static constexpr std::string_view kName = "logprob";
  struct Problem {};
  struct Caps {};
  struct Args {
    const float* logits = nullptr;  // [rows, vocab], dense
    int64_t rows = 0;
    int64_t vocab = 0;
    const int32_t* ids = nullptr;  // [rows]
    float* out = nullptr;          // [rows]
  };
};

// How one row is sampled. Filters apply in this order: repetition penalty, temperature, top-k,
// top-p, min-p.
struct SampleParams {
  float temperature = 1;  // 0: arg-max
  int32_t top_k = 0;      // keep the k best; 0: all
  float top_p = 1;        // keep the smallest set of best tokens whose probability reaches top_p
  float min_p = 0;        // keep tokens of at least min_p times the best probability
  float repetition_penalty = 1;  // of tokens seen: logit > 0 ? logit / p : logit * p
  int32_t history_begin = 0;     // tokens seen: history[history_begin, history_end)
  int32_t history_end = 0;
  uint32_t pad = 0;
  uint64_t random =
      0;  // uniform random bits of this row and step: seed and position decide, not the batch
};

// out[r] = one token of row r. Never reads the host; the parameters are device memory.
struct Sample {
  static constexpr std::string_view kName = "sample";
  struct Problem {};
  struct Caps {};
  struct Args {
    const float* logits = nullptr;  // [rows, vocab], dense
    int64_t rows = 0;
    int64_t vocab = 0;
    const SampleParams* params = nullptr;  // [rows]
    const int32_t* history = nullptr;      // token ids, or null when no row has a penalty
    int32_t* out = nullptr;                // [rows]
    float* scratch = nullptr;              // [rows, 2 * vocab] floats
  };
};

inline void judge(const ArgMax::Caps&, const ArgMax::Problem&, std::vector<Refusal>&) {}
inline void judge(const TopK::Caps&, const TopK::Problem&, std::vector<Refusal>&) {}
inline void judge(const LogProb::Caps&, const LogProb::Problem&, std::vector<Refusal>&) {}
inline void judge(const Sample::Caps&, const Sample::Problem&, std::vector<Refusal>&) {}

}  // namespace octet
