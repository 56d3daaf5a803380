// The scaling of rotary frequencies in a GGUF file as config.json writes it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numbers>

#include "base/error.h"
#include "base/printable.h"
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

// The attention factors other than 1 that a file gives have a place in yarn only.
void check_attention(const GgufFile& file, const std::string& prefix, bool yarn) {
  for (const std::string_view name : {"attn_factor", "yarn_attn_factor"}) {
    if (yarn && name == "attn_factor") continue;
    const std::string key = prefix + std::string(name);
    const double value = file.find_number(key).value_or(1);
    if (value != 1) refuse(file, fmt::format("{} is {}, only 1 is known", key, value));
  }
  // llama.cpp takes 1 for yarn and 0 for the others where the value is absent or below 0.
  const std::string key = prefix + "yarn_ext_factor";
  const double expected = yarn ? 1 : 0;
  const double value = file.find_number(key).value_or(expected);
  if (value != expected && value >= 0) {
    refuse(file, fmt::format("{} is {}, only {} is known", key, value, expected));
  }
}

Json yarn_scaling(const GgufFile& file, const std::string& prefix) {
  if (file.has(prefix + "yarn_log_multiplier")) {
    refuse(file, prefix + "yarn_log_multiplier is not known for this architecture");
  }
  const double factor = gguf_positive(file, prefix + "factor");
  Json scaling{{"rope_type", "yarn"},
               {"factor", factor},
               {"original_max_position_embeddings",
                file.integer(prefix + "original_context_length", 1, int64_t{1} << 30)}};
  for (const std::string_view beta : {"beta_fast", "beta_slow"}) {
    const std::string key = fmt::format("{}yarn_{}", prefix, beta);
    if (file.has(key)) scaling[std::string(beta)] = gguf_positive(file, key);
  }
  if (const std::string key = prefix + "attn_factor"; file.has(key)) {
    // llama.cpp multiplies yarn's own factor by it (llama-context.cpp, yarn_attn_factor); that of
    // config.json replaces it.
    const double given = gguf_positive(file, key);
    if (given != 1)
      scaling["attention_factor"] = given * (0.1 * std::log(std::max(factor, 1.0)) + 1);
  }
  return scaling;
}

// The factor of linear scaling, under its name or the old one; 1 without either.
double linear_factor(const GgufFile& file, const std::string& rope) {
  for (const std::string_view name : {"scaling.factor", "scale_linear"}) {
    if (const std::string key = rope + std::string(name); file.has(key)) {
      return gguf_positive(file, key);
    }
  }
  return 1;
}

}  // namespace

Json gguf_rope_scaling(const GgufFile& file, const GgufModel& model) {
  const std::string rope = fmt::format("{}.rope.", model.family->name);
  const std::string prefix = rope + "scaling.";
  // llama.cpp scales linearly unless the file says otherwise (llama-model.cpp, load_hparams).
  const auto given = file.find_text(prefix + "type");
  const std::string_view type = given.value_or("linear");
  if (type != "none" && type != "linear" && type != "yarn") {
    refuse(file, fmt::format("{}type is \"{}\"", prefix, printable_name(type)));
  }
  check_attention(file, prefix, type == "yarn");
  const double linear = type == "linear" ? linear_factor(file, rope) : 1;
  if (const GgufTensor* factors = file.find(kFactors)) {
    if (type == "yarn") {
      refuse(file, fmt::format("{}type is yarn and there is a tensor {}", prefix, kFactors));
    }
    if (linear != 1) {
      refuse(file, fmt::format("frequencies are scaled by {} and there is a tensor {}", linear,
                               kFactors));
    }
    return llama3_scaling(file, model, *factors);
  }
  if (type == "yarn") return yarn_scaling(file, prefix);
  if (given == "linear" && !file.has(prefix + "factor") && !file.has(rope + "scale_linear")) {
    file.fail(fmt::format("has no value {}factor", prefix));
  }
  if (linear == 1) return nullptr;
  return {{"rope_type", "linear"}, {"factor", linear}};
}

}  // namespace octet
