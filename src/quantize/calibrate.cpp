#include "quantize/calibrate.h"

#include <algorithm>

#include "base/error.h"

namespace octet {

std::vector<float> calibrate(Engine& engine, std::span<const int32_t> tokens, int64_t window,
                             const std::function<void(int64_t)>& progress) {
  if (tokens.empty())
    throw_error(Code::BadInput, "the calibration text has no tokens", "give a longer text");
  engine.watch_inputs();
  const auto step = static_cast<size_t>(std::min(window, engine.plan().budget.max_model_len));
  for (size_t begin = 0; begin < tokens.size(); begin += step) {
    const auto part = tokens.subspan(begin, std::min(step, tokens.size() - begin));
    Request request;
    request.prompt.assign(part.begin(), part.end());
    request.score_prompt = part.size() > 1;
    request.max_tokens = 0;
    engine.submit(std::move(request));
    while (!engine.idle()) {
      for (const Event& event : engine.step()) {
        if (event.finish == FinishReason::Failed) {
          throw_error(Code::Environment, event.failure,
                      "octet inspect names weights that are damaged");
        }
        if (progress) progress(static_cast<int64_t>(begin) + event.prompt_tokens_done);
      }
    }
  }
  return engine.input_amax();
}

}  // namespace octet
