#pragma once
// How far the predictions of one model are from those of another on the same text.
#include <cstdint>
#include <functional>
#include <span>

#include "engine/engine.h"
#include "text/tokenizer.h"

namespace octet {

// Over the scored tokens: all but the first of each window. Divergences are KL(reference || model)
// of the whole vocabulary's distributions, in nats.
struct KlResult {
  int64_t tokens = 0;  // of the text
  int64_t scored = 0;
  double mean = 0;
  double max = 0;
  int64_t max_token = 0;  // index in the text of the token that was predicted the least alike
  double p50 = 0, p90 = 0, p99 = 0, p999 = 0;  // percentiles by nearest rank
  double top1_agreement = 0;  // share of tokens for which both models have the same best one
  double reference_nll = 0, nll = 0;  // mean negative log-likelihoods in nats
};

// Reads `tokens` with both models in consecutive windows of the smaller context. `progress` gets
// the number of tokens that both have done; what it throws ends the run. Throws BadInput for fewer
// than two tokens, a context of one, or vocabularies of different sizes; Environment when values
// are not finite. Memory: one step's logits of each model.
KlResult kl_divergence(Engine& reference, Engine& model, std::span<const int32_t> tokens,
                       ThreadPool& pool, const std::function<void(int64_t)>& progress);

// One token: sum p (log p - log q) of softmax p of `reference` and q of `model`, in float64.
struct TokenKl {
  double kl = 0;
  bool same_best = false;             // ties go to the lower id
  double reference_nll = 0, nll = 0;  // of `target`
};
TokenKl token_kl(std::span<const float> reference, std::span<const float> model, int32_t target);

// Throws BadInput naming the first difference when the tokenizers give other ids or other bytes.
void require_same_tokenizer(const Tokenizer& reference, const Tokenizer& model);

}  // namespace octet
