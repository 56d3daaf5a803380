#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "base/error.h"
#include "base/plural.h"
#include "engine/batch_builder.h"

namespace octet {
namespace {

int32_t blocks_for(const ModelPlan& plan) {
  const int64_t per_sequence =
      (plan.budget.max_model_len + plan.kv.block_size - 1) / plan.kv.block_size;
  return static_cast<int32_t>(per_sequence * plan.options.max_sequences);
}

}  // namespace

struct Engine::Impl {
  Impl(Prepared p, Device& device)
      : checkpoint(std::move(p.checkpoint)),
        model(load(checkpoint, std::move(p.config), p.description, p.records, std::move(p.plan),
                   device)),
        pool(blocks_for(model->plan)),
        cache(model->plan.kv, pool.blocks(), device),
        communicator(make_self_communicator()),
        decoder(model, cache, *communicator, device) {}

  Checkpoint checkpoint;
  std::shared_ptr<const Model> model;
  BlockPool pool;
  KvCache cache;
  std::unique_ptr<Communicator> communicator;
  Decoder decoder;
  std::deque<Sequence> waiting, running;
  uint64_t next_id = 1;

  const ModelPlan& plan() const { return model->plan; }

  void check(const Request& request) const {
    const int64_t limit = plan().budget.max_model_len;
    const auto length = static_cast<int64_t>(request.prompt.size());
    if (request.prompt.empty()) {
      throw_error(Code::BadInput, "the prompt has no tokens",
                  "give a text, or at least one id with --prompt-ids");
    }
    if (length + (request.max_tokens > 0 && !request.score_prompt ? 1 : 0) > limit) {
      throw_error(Code::BadInput,
                  fmt::format("the prompt has {}, the context holds {} with the answer",
                              counted(length, "token"), limit),
                  limit < plan().request.dims.max_position
                      ? std::string("shorten the prompt or raise --max-model-len")
                      : fmt::format("shorten the prompt: the model was made for {}",
                                    counted(plan().request.dims.max_position, "position")));
    }
    for (const int32_t token : request.prompt) {
      if (token < 0 || token >= plan().request.dims.vocab) {
        throw_error(Code::BadInput,
                    fmt::format("token {} is not in the vocabulary of {} entries", token,
                                plan().request.dims.vocab),
                    "the tokenizer and the model must belong together");
      }
    }
    if (request.top_logprobs < 0 || request.top_logprobs > plan().request.dims.vocab) {
      throw_error(Code::BadInput,
                  fmt::format("log-probabilities of {} were asked for, the vocabulary has {}",
                              counted(request.top_logprobs, "token"), plan().request.dims.vocab),
                  "ask for 0 to the size of the vocabulary");
    }
  }

  void admit() {
    while (!waiting.empty() &&
           static_cast<int64_t>(running.size()) < plan().options.max_sequences) {
      running.push_back(std::move(waiting.front()));
      waiting.pop_front();
    }
  }

  // The token of an answering sequence that has just been computed to its end.
  void answer(const StepPart& part, const StepResult& result, int64_t top_stride, Event& event) {
    Sequence& s = *part.sequence;
    const auto at = static_cast<size_t>(part.first_logit);
    const int32_t token = result.ids[at];
    event.token = token;
    event.logprob = result.logprobs[at];
    for (int64_t i = 0; i < s.request.top_logprobs; ++i) {
      const size_t j = at * static_cast<size_t>(top_stride) + static_cast<size_t>(i);
      event.top.emplace_back(result.top_ids[j], result.top_logprobs[j]);
    }
    s.push(token);
    const auto& stops = s.request.stop_ids;
    if (std::find(stops.begin(), stops.end(), token) != stops.end()) {
      event.finish = FinishReason::Stop;
    } else if (s.answered() >= s.request.max_tokens ||
               static_cast<int64_t>(s.tokens.size()) >= plan().budget.max_model_len) {
      event.finish = FinishReason::Length;
    }
  }

  void commit(const StepPart& part, const Batch& batch, const StepResult& result,
              const SeqSpan& span, Event& event) {
    Sequence& s = *part.sequence;
    s.computed += part.rows;
    event.prompt_tokens_done = std::min(s.computed, static_cast<int64_t>(s.request.prompt.size()));
    for (int32_t row = span.row_begin; row < span.row_begin + span.rows; ++row) {
      const int32_t stage = result.not_finite[static_cast<size_t>(row)];
      if (stage == StepResult::kFinite) continue;
      event.finish = FinishReason::Failed;
      event.failure =
          fmt::format("token {}: {} produced values that are not finite",
                      span.context + row - span.row_begin, stage_name(stage, plan().dims.layers));
      return;
    }
    if (s.request.score_prompt) {
      const auto begin = result.target_logprobs.begin() + part.first_logit;
      event.scores.assign(begin, begin + part.logits);
      if (s.request.keep_logits) {
        const int64_t vocab = plan().request.dims.vocab;
        const auto rows = result.logits.begin() + part.first_logit * vocab;
        event.logits.assign(rows, rows + part.logits * vocab);
      }
      if (s.pending() == 0) event.finish = FinishReason::Length;
    } else if (part.logits > 0) {
      answer(part, result, batch.top_logprobs, event);
    } else if (s.pending() == 0) {
      event.finish = FinishReason::Length;
    }
  }

  std::vector<Event> step() {
    admit();
    std::vector<Event> events;
    const auto drop = [&](std::deque<Sequence>& queue) {
      for (const Sequence& s : queue) {
        if (s.cancelled) {
          events.emplace_back();
          events.back().request = s.id;
          events.back().finish = FinishReason::Cancelled;
        }
      }
      std::erase_if(queue, [](const Sequence& s) { return s.cancelled; });
    };
    drop(waiting);
    drop(running);
    if (running.empty()) return events;

    std::vector<Sequence*> order;
    for (Sequence& s : running) order.push_back(&s);
    std::vector<StepPart> parts = plan_step(order, decoder.max_rows(), plan().kv.block_size);
    OCTET_CHECK(!parts.empty(), "{} sequences run and none can", running.size());
    const Batch batch = build_batch(parts, plan().kv);
    const StepResult result = decoder.forward(batch);
    std::vector<uint64_t> finished;
    for (size_t i = 0; i < parts.size(); ++i) {
      Event event;
      event.request = parts[i].sequence->id;
      commit(parts[i], batch, result, batch.spans[i], event);
      if (event.finish) finished.push_back(event.request);
      events.push_back(std::move(event));
    }
    std::erase_if(running, [&](const Sequence& s) {
      return std::find(finished.begin(), finished.end(), s.id) != finished.end();
    });
    std::sort(events.begin(), events.end(),
              [](const Event& a, const Event& b) { return a.request < b.request; });
    return events;
  }
};

Engine::Engine(Prepared prepared, Device& device)
    : impl_(std::make_unique<Impl>(std::move(prepared), device)) {}
Engine::~Engine() = default;

const ModelPlan& Engine::plan() const {
  return impl_->plan();
}
const Checkpoint& Engine::checkpoint() const {
  return impl_->checkpoint;
}
const ModelConfig& Engine::config() const {
  return impl_->model->config;
}

uint64_t Engine::submit(Request request) {
  impl_->check(request);
  const uint64_t id = impl_->next_id++;
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t answer = request.score_prompt ? 0 : std::max<int64_t>(0, request.max_tokens - 1);
  const int64_t limit = impl_->plan().budget.max_model_len;
  impl_->waiting.emplace_back(id, std::move(request), impl_->pool);
  // The last token of an answer is never computed.
  impl_->waiting.back().final_length = answer > limit - prompt ? limit : prompt + answer;
  return id;
}

void Engine::cancel(uint64_t request) {
  for (auto* queue : {&impl_->waiting, &impl_->running}) {
    for (Sequence& s : *queue) s.cancelled = s.cancelled || s.id == request;
  }
}

bool Engine::idle() const {
  return impl_->waiting.empty() && impl_->running.empty();
}

std::vector<Event> Engine::step() {
  return impl_->step();
}

void Engine::watch_inputs() {
  impl_->decoder.watch_inputs();
}

std::vector<float> Engine::input_amax() {
  return impl_->decoder.input_amax();
}

}  // namespace octet
