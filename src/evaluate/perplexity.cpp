#include "evaluate/perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace octet {

double Perplexity::perplexity() const {
  return std::exp(nll);
}

Perplexity perplexity(Engine& engine, std::span<const int32_t> tokens,
                      const std::function<void(int64_t)>& progress) {
  if (tokens.size() < 2) {
    throw_error(
        Code::BadInput,
        fmt::format("a text of {} tokens predicts nothing: at least 2 are needed", tokens.size()),
        "give a longer text");
  }
  const auto window = static_cast<size_t>(engine.plan().budget.max_model_len);
  if (window < 2) {
    throw_error(Code::BadInput, "a context of 1 token predicts nothing: at least 2 are needed",
                "raise --max-model-len");
  }
  Perplexity out;
  out.tokens = static_cast<int64_t>(tokens.size());
  double sum = 0;
  for (size_t begin = 0; begin < tokens.size(); begin += window) {
    const auto part = tokens.subspan(begin, std::min(window, tokens.size() - begin));
    if (part.size() < 2) break;
    Request request;
    request.prompt.assign(part.begin(), part.end());
    request.score_prompt = true;
    engine.submit(std::move(request));
    while (!engine.idle()) {
      for (const Event& event : engine.step()) {
        if (event.finish == FinishReason::Failed) {
          throw_error(Code::Environment, event.failure,
                      "octet inspect names weights and scales that are damaged");
        }
        for (const float score : event.scores) sum -= score;
        out.scored += static_cast<int64_t>(event.scores.size());
        if (progress) progress(static_cast<int64_t>(begin) + event.prompt_tokens_done);
      }
    }
  }
  out.nll = sum / static_cast<double>(out.scored);
  return out;
}

}  // namespace octet
