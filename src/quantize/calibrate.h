#pragma once
// Static input scales: what a model's linear layers see on a text.
#include <functional>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace octet {

// The largest |input| of every linear layer, in model order, while the engine's model reads
// `tokens` in windows of `window` tokens. Throws BadInput for an empty text, Environment when
// values are not finite.
std::vector<float> calibrate(Engine& engine, std::span<const int32_t> tokens, int64_t window,
                             const std::function<void(int64_t)>& progress);

}  // namespace octet
