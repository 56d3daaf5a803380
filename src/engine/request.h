#pragma once
// What a user of the engine asks for, and what comes back, in tokens; text never enters the engine.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octet {

// How tokens are drawn. The defaults are greedy.
struct SamplingParams {
  float temperature = 0;  // 0: arg-max
  int32_t top_k = 0;      // 0: all
  float top_p = 1;
  float min_p = 0;
  float repetition_penalty = 1;  // of tokens in the prompt and the answer
  uint64_t seed = 0;             // with the position it decides every draw
};

struct Request {
  std::vector<int32_t> prompt;  // not empty
  SamplingParams sampling;
  int64_t max_tokens = 128;       // of the answer; 0: the prompt is only computed
  std::vector<int32_t> stop_ids;  // end-of-text tokens
  int64_t top_logprobs = 0;       // best tokens to report per step
  bool score_prompt =
      false;  // report log p(prompt[i] | prompt[0, i)) for i >= 1 instead of answering
  bool keep_logits = false;  // with score_prompt: report all logits of the scored rows too
};

enum class FinishReason { Stop, Length, Cancelled, Failed };
constexpr std::string_view name(FinishReason reason) {
  constexpr std::string_view kNames[] = {"stop", "length", "cancelled", "error"};
  return kNames[static_cast<int>(reason)];
}

// Something that happened to one request in a step.
struct Event {
  uint64_t request = 0;
  std::optional<int32_t> token;                // the next token of the answer
  float logprob = 0;                           // of that token, under the model's own distribution
  std::vector<std::pair<int32_t, float>> top;  // best first
  std::vector<float> scores;       // score_prompt: log-probabilities, in order, as chunks finish
  std::vector<float> logits;       // keep_logits: [scores, vocab], the rows that gave `scores`
  int64_t prompt_tokens_done = 0;  // of the prompt, for progress
  std::optional<FinishReason> finish;
  std::string failure;  // why, for Failed
};

}  // namespace octet
