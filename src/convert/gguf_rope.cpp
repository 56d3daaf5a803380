// The scaling of rotary frequencies in a GGUF file as config.json writes it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numbers>

#include "base/error.h"
#include "convert/gguf_model.h"

namespace octet {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFactors = "rope_freqs.weight";

[[noreturn]] void refuse(const GgufFile& file, const std::string& what) {
  throw_error(Code::CannotRun, fmt::format("{}: {}", file.path().string(), what),
              "rope scalings that are imported: none, linear, yarn, and llama3 as a tensor");
}

// The three numbers that every published Llama 3.1, 3.2 and 3.3 has; the factor differs.
constexpr double kLowFreqFactor = 1;
constexpr double kHighFreqFactor = 4;
constexpr double kOriginalContext = 8192;

// By how much the frequency of pair `i` is divided (transformers, modeling_rope_utils,
// _compute_llama3_parameters).
double llama3_factor(double frequency, double factor) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength < kOriginalContext / kHighFreqFactor) return 1;
  if (wavelength > kOriginalContext / kLowFreqFactor) return factor;
  const double smooth =
      (kOriginalContext / wavelength - kLowFreqFactor) / (kHighFreqFactor - kLowFreqFactor);
  return 1 / ((1 - smooth) / factor + smooth);
}

// llama.cpp stores the divisors themselves: the numbers behind them are found by trying.
Json llama3_scaling(const GgufFile& file, const GgufModel& model, const GgufTensor& tensor) {
  const int64_t pairs = model.head_dim / 2;
  if (tensor.shape != Shape{pairs} || tensor.type->decode != GgufDecode::F32) {
    file.fail(fmt::format("tensor {} is {} {}, expected F32 [{}]", kFactors, tensor.type->name,
                          to_string(tensor.shape), pairs));
  }
  std::vector<float> divisors(static_cast<size_t>(pairs));
  std::memcpy(divisors.data(), file.bytes(tensor).data(), tensor.bytes);
  if (std::all_of(divisors.begin(), divisors.end(), [](float x) { return x == 1; })) return nullptr;
  const double factor = divisors.back();  // the slowest pair is divided by all of it
  for (int64_t i = 0; i < pairs; ++i) {
    const double frequency = std::pow(
        model.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(model.head_dim));
    const double expected = llama3_factor(frequency, factor);
    const double got = divisors[static_cast<size_t>(i)];
    constexpr double kRelative = 1e-4;  // the converter computes in float32
    if (!(factor > 1) || !(std::abs(got - expected) <= kRelative * expected)) {
      refuse(file,
             fmt::format("tensor {} is no known scaling: element {} is {}, llama3 with factor "
                         "{} has {}",
                         kFactors, i, got, factor, expected));
    }
  }
  return {{"factor", factor},
          {"high_freq_factor", kHighFreqFactor},
          {"low_freq_factor", kLowFreqFactor},
          {"original_max_position_embeddings", static_cast<int64_t>(kOriginalContext)},
          {"rope_type", "llama3"}};
}

double positive(const GgufFile& file, const std::string& key) {
  const double value = file.number(key);
  if (!(value > 0)) file.fail(fmt::format("{} is {}, expected a number over 0", key, value));
  return value;
}

Json yarn_scaling(const GgufFile& file, const std::string& prefix) {
  for (const std::string_view name : {"attn_factor", "yarn_attn_factor", "yarn_ext_factor"}) {
    const std::string key = prefix + std::string(name);
    const double value = file.find_number(key).value_or(1);
    if (value != 1) refuse(file, fmt::format("{} is {}, only 1 is known", key, value));
  }
  if (file.has(prefix + "yarn_log_multiplier")) {
    refuse(file, prefix + "yarn_log_multiplier is not known for this architecture");
  }
  Json scaling{{"rope_type", "yarn"},
               {"factor", positive(file, prefix + "factor")},
               {"original_max_position_embeddings",
                file.integer(prefix + "original_context_length", 1, int64_t{1} << 30)}};
  for (const std::string_view beta : {"beta_fast", "beta_slow"}) {
    const std::string key = fmt::format("{}yarn_{}", prefix, beta);
    if (file.has(key)) scaling[std::string(beta)] = positive(file, key);
  }
  return scaling;
}

}  // namespace

Json gguf_rope_scaling(const GgufFile& file, const GgufModel& model) {
  const std::string rope = fmt::format("{}.rope.", model.family->name);
  const std::string prefix = rope + "scaling.";
  const std::string_view type = file.find_text(prefix + "type").value_or("none");
  const GgufTensor* factors = file.find(kFactors);
  if (factors != nullptr) {
    if (type != "none") {
      refuse(file, fmt::format("{}type is {} and there is a tensor {}", prefix, type, kFactors));
    }
    return llama3_scaling(file, model, *factors);
  }
  if (type == "linear") {
    return {{"rope_type", "linear"}, {"factor", positive(file, prefix + "factor")}};
  }
  if (type == "yarn") return yarn_scaling(file, prefix);
  if (type != "none") refuse(file, fmt::format("{}type is \"{}\"", prefix, type));
  const double linear = file.find_number(rope + "scale_linear").value_or(1);
  if (linear == 1) return nullptr;
  if (!(linear > 0)) file.fail(fmt::format("{}scale_linear is {}", rope, linear));
  return {{"rope_type", "linear"}, {"factor", linear}};
}

}  // namespace octet
