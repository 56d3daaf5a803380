#pragma once
// Every operation that is not linear, called as the decoder calls it: with the model's own sizes,
// weights, frequencies and cache, against double precision. What is compared: docs/CHECKS.md.
#include "evaluate/op_check.h"

namespace octet {

// Rows of the embedding: those of the first and the last token, and of some between.
OpCheck check_embedding(const OpCheckScope& scope, const Kernel<Gather>& kernel);
// Rows of float32 activations.
OpCheck check_gather_rows(const OpCheckScope& scope, const Kernel<Gather>& kernel);
// Every norm of the model with its own weight: residual sums, normalised values, and the watch for
// values that are not finite.
OpCheck check_norm(const OpCheckScope& scope, const Kernel<RmsNorm>& kernel);
OpCheck check_silu_mul(const OpCheckScope& scope, const Kernel<SiluMul>& kernel);
OpCheck check_round(const OpCheckScope& scope, const Kernel<RoundBf16>& kernel);
OpCheck check_absmax(const OpCheckScope& scope, const Kernel<AbsMax>& kernel);

// The first and the last positions of the planned context with the model's own frequencies: q, and
// what is written to the cache.
OpCheck check_rope(const OpCheckScope& scope, const Kernel<Rope>& kernel);
// For each window of the model: a prompt, a row after a long context, some rows after a short one.
OpCheck check_attention(const OpCheckScope& scope, const Kernel<Attention>& kernel);

// Logits over the model's vocabulary, with ties.
OpCheck check_argmax(const OpCheckScope& scope, const Kernel<ArgMax>& kernel);
OpCheck check_topk(const OpCheckScope& scope, const Kernel<TopK>& kernel);
OpCheck check_logprob(const OpCheckScope& scope, const Kernel<LogProb>& kernel);
// Draws with given random numbers, one row for each filter.
OpCheck check_sample(const OpCheckScope& scope, const Kernel<Sample>& kernel);

}  // namespace octet
