#pragma once
// From sequences to one step's batch: pure, and the only place that knows how rows, slots and
// tables are laid out.
#include <span>

#include "engine/sequence.h"
#include "model/batch.h"
#include "num/kv_spec.h"

namespace octet {

// One sequence's part of a step.
struct StepPart {
  Sequence* sequence = nullptr;
  int64_t rows = 0;         // tokens [computed, computed + rows)
  int64_t first_logit = 0;  // index of its first row in Batch::logit_rows
  int64_t logits = 0;       // rows whose logits are wanted
};

// Shares `max_rows` among sequences: those that answer take one row each, then prompts take what is
// left, oldest first. Sequences whose blocks cannot grow are left out of this step.
std::vector<StepPart> plan_step(std::span<Sequence* const> sequences, int64_t max_rows,
                                int64_t block_size);

// The batch of a step; fills in the parts' logit ranges. Requires that each part's blocks hold its
// tokens.
Batch build_batch(std::span<StepPart> parts, const KvSpec& kv);

// The random bits of one draw: a function of seed and position alone.
uint64_t draw_bits(uint64_t seed, uint64_t position);

}  // namespace octet
