#pragma once
// Cosines and sines of rotary embedding.
#include <span>
#include <vector>

#include "model/config.h"

namespace octet {

// Angular frequency of each of the rotary_dim / 2 pairs, in float32 as transformers computes it
// (modeling_rope_utils):
//   Default  theta^(-2i/d)
//   Linear   the same divided by factor
//   Llama3   wavelengths under original/high_freq_factor stay, over original/low_freq_factor are
//   divided by factor, between
//            them a straight blend
//   Yarn     a ramp between division by factor (slow pairs) and none (fast pairs), arXiv 2309.00071
std::vector<float> rope_frequencies(const RopeConfig& rope, int64_t rotary_dim);

// Writes [positions, rotary_dim] to `out`: rotary_dim / 2 cosines, then as many sines, times the
// attention factor. The angle is the float32 product of position and frequency. `out` needs
// positions.size() * 2 * frequencies.size() elements.
void rope_angles(std::span<const float> frequencies, float attention_factor,
                 std::span<const int32_t> positions, float* out);

}  // namespace octet
