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
//   Dynamic  Default with a theta that grows with `length` beyond the original one ("NTK-aware")
//   LongRope Default divided pair by pair by short_factor, or by long_factor when `length` is
//            beyond the original one, arXiv 2402.13753
// `length` is the number of tokens that the sequence will have when it ends: all its keys and
// queries are rotated by one table.
std::vector<float> rope_frequencies(const RopeConfig& rope, int64_t rotary_dim, int64_t length);

// True when the frequencies depend on the length.
bool depends_on_length(RopeKind kind);

// Writes [positions, rotary_dim] to `out`: rotary_dim / 2 cosines, then as many sines, times the
// attention factor. The angle is the float32 product of position and frequency. `out` needs
// positions.size() * 2 * frequencies.size() elements.
void rope_angles(std::span<const float> frequencies, float attention_factor,
                 std::span<const int32_t> positions, float* out);

}  // namespace octet
