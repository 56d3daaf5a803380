#include "engine/batch_builder.h"

#include <algorithm>

#include "base/split_mix.h"

namespace octet {
namespace {

// The logit rows of a part: all of a scored prompt that have a next token, else the last row once
// the prompt is done.
int64_t logits_wanted(const Sequence& sequence, int64_t rows) {
  const auto total = static_cast<int64_t>(sequence.tokens.size());
  const int64_t end = sequence.computed + rows;
  if (sequence.request.score_prompt) return std::min(end, total - 1) - sequence.computed;
  return end == total && sequence.request.max_tokens > 0 ? 1 : 0;
}

SampleParams sample_params(const Sequence& sequence, Batch& batch) {
  const SamplingParams& asked = sequence.request.sampling;
  SampleParams params;
  params.temperature = asked.temperature;
  params.top_k = asked.top_k;
  params.top_p = asked.top_p;
  params.min_p = asked.min_p;
  params.repetition_penalty = asked.repetition_penalty;
  params.history_begin = static_cast<int32_t>(batch.history.size());
  batch.history.insert(batch.history.end(), sequence.seen.begin(), sequence.seen.end());
  params.history_end = static_cast<int32_t>(batch.history.size());
  params.random = draw_bits(asked.seed, sequence.tokens.size());
  return params;
}

void append_part(Batch& batch, StepPart& part, const KvSpec& kv, int32_t table) {
  const Sequence& s = *part.sequence;
  const auto row_begin = static_cast<int32_t>(batch.tokens.size());
  batch.spans.push_back(
      {row_begin, static_cast<int32_t>(part.rows), static_cast<int32_t>(s.computed), table});
  batch.lengths.push_back(std::max(s.final_length, s.computed + part.rows));
  for (int64_t position = s.computed; position < s.computed + part.rows; ++position) {
    batch.tokens.push_back(s.tokens[static_cast<size_t>(position)]);
    batch.positions.push_back(static_cast<int32_t>(position));
    batch.slots.push_back(s.blocks.slot(position, kv.block_size));
  }
  part.first_logit = static_cast<int64_t>(batch.logit_rows.size());
  part.logits = logits_wanted(s, part.rows);
  const int64_t first = s.request.score_prompt ? 0 : part.rows - part.logits;
  for (int64_t i = 0; i < part.logits; ++i) {
    batch.logit_rows.push_back(row_begin + static_cast<int32_t>(first + i));
    batch.sample.push_back(sample_params(s, batch));
    const bool scored = s.request.score_prompt;
    batch.targets.push_back(scored ? s.tokens[static_cast<size_t>(s.computed + i + 1)] : 0);
  }
  batch.top_logprobs = std::max(batch.top_logprobs, s.request.top_logprobs);
  batch.keep_logits = batch.keep_logits || (s.request.score_prompt && s.request.keep_logits);
}

}  // namespace

uint64_t draw_bits(uint64_t seed, uint64_t position) {
  return SplitMix64(seed + position * SplitMix64::kStep).bits();
}

std::vector<StepPart> plan_step(std::span<Sequence* const> sequences, int64_t max_rows,
                                int64_t block_size) {
  std::vector<StepPart> parts;
  int64_t left = max_rows;
  for (const bool prompts : {false, true}) {
    for (Sequence* s : sequences) {
      const bool is_prompt = s->pending() > 1 || s->answered() == 0;
      if (is_prompt != prompts || left == 0) continue;
      const int64_t rows = std::min(left, s->pending());
      if (rows < 1 || !s->blocks.grow(s->computed + rows, block_size)) continue;
      parts.push_back({s, rows, 0, 0});
      left -= rows;
    }
  }
  return parts;
}

Batch build_batch(std::span<StepPart> parts, const KvSpec& kv) {
  Batch batch;
  for (const StepPart& part : parts) {
    batch.table_stride =
        std::max(batch.table_stride, static_cast<int64_t>(part.sequence->blocks.blocks().size()));
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    append_part(batch, parts[i], kv, static_cast<int32_t>(i));
    const auto blocks = parts[i].sequence->blocks.blocks();
    batch.block_tables.insert(batch.block_tables.end(), blocks.begin(), blocks.end());
    batch.block_tables.resize((i + 1) * static_cast<size_t>(batch.table_stride), 0);
  }
  const bool any_scored = std::any_of(parts.begin(), parts.end(), [](const StepPart& p) {
    return p.sequence->request.score_prompt;
  });
  if (!any_scored) batch.targets.clear();
  return batch;
}

}  // namespace octet
