#pragma once
// How well a model predicts a text.
#include <cstdint>
#include <functional>
#include <span>

#include "engine/engine.h"

namespace octet {

struct Perplexity {
  int64_t tokens = 0;  // of the text
  int64_t scored = 0;  // tokens with a prediction: all but the first of each window
  double nll = 0;      // mean negative log-likelihood of the scored tokens, in nats

  double perplexity() const;
};

// Scores `tokens` as one sequence where it fits the context, else in consecutive windows of the
// whole context. `progress` gets the number of tokens done. Throws BadInput for fewer than two
// tokens or a context of one, Environment when values are not finite.
Perplexity perplexity(Engine& engine, std::span<const int32_t> tokens,
                      const std::function<void(int64_t)>& progress);

}  // namespace octet
