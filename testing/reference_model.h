#pragma once
// The logits of a tiny decoder in double precision, from what the tensors of its checkpoint mean:
// an oracle that shares neither the reading of files nor a kernel with the engine.
#include <span>
#include <vector>

#include "testing/tiny_checkpoint.h"

namespace octet {

// What a TinyModel does not say.
struct ReferenceDetails {
  std::vector<int64_t> windows = {};     // per layer: tokens a row sees, itself included; 0: all
  std::vector<double> frequencies = {};  // per rotated pair; empty: theta 10000
  double attention_factor = 1;           // of cosines and sines
  std::vector<std::string> weight_only = {};  // modules whose input is not quantised after all
};

// Logits [tokens][vocab] of the decoder described by `model`, whose tensors are in `checkpoint`
// under the names that tiny_model() gives them. Activations are quantised as each layer's
// LayerQuant says: scale = largest magnitude / largest code of a token or group, saturating, ties
// to even.
std::vector<std::vector<double>> reference_logits(const TinyCheckpoint& checkpoint,
                                                  const TinyModel& model,
                                                  std::span<const int32_t> ids,
                                                  const ReferenceDetails& details = {});

}  // namespace octet
