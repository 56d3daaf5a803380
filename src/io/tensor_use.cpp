#include "io/tensor_use.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/printable.h"

namespace octet {
namespace {

constexpr uint8_t kSkipped = 255;

constexpr std::string_view kKvScale = "scales of a quantised KV cache are not used";
constexpr std::string_view kOutputScale = "scales of quantised outputs are not used";
constexpr std::string_view kZeroPoint = "zero points of symmetric quantisation are zero";
constexpr std::string_view kRotary = "rotary frequencies are computed from the config";
constexpr std::string_view kPrediction = "extra prediction layers (num_nextn_predict_layers)";

// Ends of names, whole components. The KV spellings are those of llm-compressor, AutoFP8, ModelOpt
// and Quark that vLLM knows (weight_utils.py, maybe_remap_kv_scale_name).
struct SkipRule {
  std::string_view end;
  std::string_view reason;
};
constexpr std::array kSkipRules{
    SkipRule{"rotary_emb.inv_freq", kRotary},
    SkipRule{"k_scale", kKvScale},
    SkipRule{"v_scale", kKvScale},
    SkipRule{"q_scale", kKvScale},
    SkipRule{"kv_scale", kKvScale},
    SkipRule{"k_proj.output_scale", kKvScale},
    SkipRule{"v_proj.output_scale", kKvScale},
    SkipRule{"q_proj.output_scale", kKvScale},
    SkipRule{"k_cache.scale", kKvScale},
    SkipRule{"v_cache.scale", kKvScale},
    SkipRule{"self_attn.q.scale", kKvScale},
    SkipRule{"self_attn.k.scale", kKvScale},
    SkipRule{"self_attn.v.scale", kKvScale},
    SkipRule{"k_zero_point", kKvScale},
    SkipRule{"v_zero_point", kKvScale},
    SkipRule{"q_zero_point", kKvScale},
    SkipRule{"output_scale", kOutputScale},
    SkipRule{"weight_zero_point", kZeroPoint},
    SkipRule{"input_zero_point", kZeroPoint},
    SkipRule{"output_zero_point", kOutputScale},
};

bool ends_with_components(std::string_view name, std::string_view end) {
  return name.ends_with(end) &&
         (name.size() == end.size() || name[name.size() - end.size() - 1] == '.');
}

int64_t integer_of(const nlohmann::json& config, std::string_view key, int64_t fallback) {
  const auto it = config.find(key);
  return it != config.end() && it->is_number_integer() ? it->get<int64_t>() : fallback;
}

// Layers past the model's own that a checkpoint may carry for speculative decoding: [begin, end).
Range prediction_layers(const nlohmann::json& root) {
  const auto text = root.find("text_config");
  const nlohmann::json& config = text != root.end() && text->is_object() ? *text : root;
  const int64_t layers = integer_of(config, "num_hidden_layers", -1);
  const int64_t extra = integer_of(config, "num_nextn_predict_layers", -1);
  constexpr int64_t kMost = 1'000'000;
  if (layers < 0 || extra < 0 || layers > kMost || extra > kMost) return {};
  // Writers set the count to 0 to switch the feature off and leave one layer in the files.
  return {layers, layers + std::max<int64_t>(extra, 1)};
}

// The number after the first component "layers", or -1.
int64_t layer_number(std::string_view name) {
  constexpr std::string_view kWord = "layers.";
  const size_t at = name.starts_with(kWord) ? 0 : name.find(".layers.");
  if (at == std::string_view::npos) return -1;
  const std::string_view rest = name.substr(name.find(kWord, at) + kWord.size());
  int64_t number = -1;
  const auto result = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  return result.ec == std::errc{} && number >= 0 ? number : -1;
}

std::string list_names(const std::vector<std::string_view>& names) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", printable_name(names[i]));
  }
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

}  // namespace

TensorUse::TensorUse(const Checkpoint& checkpoint)
    : checkpoint_(&checkpoint), uses_(checkpoint.tensors().size()) {}

size_t TensorUse::index(std::string_view name) const {
  const TensorEntry* entry = checkpoint_->find(name);
  if (entry == nullptr) {
    throw_error(Code::BadInput,
                fmt::format("tensor \"{}\" is absent from {}", name, checkpoint_->dir().string()));
  }
  return static_cast<size_t>(entry - checkpoint_->tensors().data());
}

void TensorUse::use(std::string_view name) {
  uint8_t& uses = uses_[index(name)];
  // A use of a skipped tensor counts as a second one, and two uses stay two.
  uses = uses == 0 ? 1 : 2;
}

void TensorUse::skip(std::string_view name, std::string_view reason) {
  const size_t at = index(name);
  if (uses_[at] != 0) {
    uses_[at] = 2;
    return;
  }
  add_skip(at, reason);
}

void TensorUse::add_skip(size_t at, std::string_view reason) {
  uses_[at] = kSkipped;
  const auto same = [&](const Skipped& group) { return group.reason == reason; };
  auto it = std::find_if(skipped_.begin(), skipped_.end(), same);
  if (it == skipped_.end()) it = skipped_.insert(it, Skipped{std::string(reason), {}});
  it->names.push_back(checkpoint_->tensors()[at].name);
}

void TensorUse::finish() {
  const Range prediction = prediction_layers(checkpoint_->config());
  unused_.clear();
  std::vector<std::string_view> twice;
  for (size_t i = 0; i < uses_.size(); ++i) {
    const std::string_view name = checkpoint_->tensors()[i].name;
    if (uses_[i] == 2) twice.push_back(name);
    if (uses_[i] != 0) continue;
    const auto rule = std::find_if(kSkipRules.begin(), kSkipRules.end(), [&](const SkipRule& r) {
      return ends_with_components(name, r.end);
    });
    const int64_t layer = layer_number(name);
    if (rule != kSkipRules.end()) {
      add_skip(i, rule->reason);
    } else if (layer >= prediction.begin && layer < prediction.end) {
      add_skip(i, kPrediction);
    } else {
      unused_.push_back(name);
    }
  }
  if (unused_.empty() && twice.empty()) return;
  std::string message = checkpoint_->dir().string() + ": every tensor must be used once;";
  if (!unused_.empty()) {
    message += fmt::format(" {} not used by this model: {}", unused_.size(), list_names(unused_));
  }
  if (!twice.empty()) {
    message += fmt::format("{} {} used more than once: {}", unused_.empty() ? "" : ";",
                           twice.size(), list_names(twice));
  }
  throw_error(Code::BadInput, std::move(message),
              "config.json describes another model than the files hold");
}

std::vector<std::string> TensorUse::skipped() const {
  std::vector<std::string> lines;
  for (const Skipped& group : skipped_) {
    lines.push_back(fmt::format("{} tensor{} skipped: {} ({}{})", group.names.size(),
                                group.names.size() == 1 ? "" : "s", group.reason,
                                group.names.front(), group.names.size() == 1 ? "" : ", ..."));
  }
  return lines;
}

}  // namespace octet
