#include "model/rope_angles.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace octet {
namespace {

void scale_llama3(const RopeConfig& rope, std::vector<float>& frequencies) {
  const auto factor = static_cast<float>(rope.factor);
  const auto original = static_cast<float>(rope.original_max_position);
  const auto low = static_cast<float>(rope.low_freq_factor);
  const auto high = static_cast<float>(rope.high_freq_factor);
  for (float& f : frequencies) {
    const float wavelength = 2 * std::numbers::pi_v<float> / f;
    if (wavelength > original / low) {
      f /= factor;
    } else if (wavelength >= original / high) {
      const float smooth = (original / wavelength - low) / (high - low);
      f = (1 - smooth) * f / factor + smooth * f;
    }
  }
}

// The pair whose wavelength makes `rotations` turns over the original length.
double yarn_pair(const RopeConfig& rope, double rotations, int64_t rotary_dim) {
  return static_cast<double>(rotary_dim) *
         std::log(rope.original_max_position / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(rope.theta));
}

void scale_yarn(const RopeConfig& rope, int64_t rotary_dim, std::vector<float>& frequencies) {
  double low = yarn_pair(rope, rope.beta_fast, rotary_dim);
  double high = yarn_pair(rope, rope.beta_slow, rotary_dim);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rotary_dim - 1));
  if (low == high) high += 0.001;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float ramp =
        std::clamp(static_cast<float>((static_cast<double>(i) - low) / (high - low)), 0.0F, 1.0F);
    const float kept = 1 - ramp;
    frequencies[i] =
        frequencies[i] / static_cast<float>(rope.factor) * (1 - kept) + frequencies[i] * kept;
  }
}

// The base that keeps the slowest pair within one turn over `length` tokens.
double dynamic_theta(const RopeConfig& rope, int64_t rotary_dim, int64_t length) {
  const double original = rope.original_max_position;
  const double tokens = std::max(static_cast<double>(length), original);
  const auto d = static_cast<double>(rotary_dim);
  return rope.theta * std::pow(rope.factor * tokens / original - (rope.factor - 1), d / (d - 2));
}

void scale_longrope(const RopeConfig& rope, int64_t length, std::vector<float>& frequencies) {
  const bool is_long = static_cast<double>(length) > rope.original_max_position;
  const std::vector<double>& factors = is_long ? rope.long_factor : rope.short_factor;
  for (size_t i = 0; i < frequencies.size(); ++i) frequencies[i] /= static_cast<float>(factors[i]);
}

}  // namespace

bool depends_on_length(RopeKind kind) {
  return kind == RopeKind::Dynamic || kind == RopeKind::LongRope;
}

std::vector<float> rope_frequencies(const RopeConfig& rope, int64_t rotary_dim, int64_t length) {
  std::vector<float> frequencies(static_cast<size_t>(rotary_dim / 2));
  const double theta =
      rope.kind == RopeKind::Dynamic ? dynamic_theta(rope, rotary_dim, length) : rope.theta;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rotary_dim);
    frequencies[i] = 1.0F / static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
  }
  switch (rope.kind) {
    case RopeKind::Default:
    case RopeKind::Dynamic:
      break;
    case RopeKind::Linear:
      for (float& f : frequencies) f /= static_cast<float>(rope.factor);
      break;
    case RopeKind::Llama3:
      scale_llama3(rope, frequencies);
      break;
    case RopeKind::Yarn:
      scale_yarn(rope, rotary_dim, frequencies);
      break;
    case RopeKind::LongRope:
      scale_longrope(rope, length, frequencies);
      break;
  }
  return frequencies;
}

void rope_angles(std::span<const float> frequencies, float attention_factor,
                 std::span<const int32_t> positions, float* out) {
  const size_t half = frequencies.size();
  for (const int32_t position : positions) {
    for (size_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(position) * frequencies[i];
      out[i] = attention_factor * std::cos(angle);
      out[half + i] = attention_factor * std::sin(angle);
    }
    out += 2 * half;
  }
}

}  // namespace octet
