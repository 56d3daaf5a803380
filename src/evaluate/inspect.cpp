#include "evaluate/inspect.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "evaluate/inspect_parts.h"
#include "io/hub_cache.h"

namespace octet {
namespace {

constexpr std::array kRules{
    InspectRule{"shard-absent", Severity::Error,
                "a file that the index or the numbering names is not there"},
    InspectRule{"shard-broken", Severity::Error, "a file is cut short or its header is damaged"},
    InspectRule{"checkpoint", Severity::Error, "the files cannot be opened as one checkpoint"},
    InspectRule{"config", Severity::Error, "a field of config.json is missing or absurd"},
    InspectRule{"unsupported", Severity::Error, "Octet cannot run this kind of model"},
    InspectRule{"quantization-config", Severity::Error,
                "the quantisation config is not one that Octet reads"},
    InspectRule{"tensor-absent", Severity::Error, "the model needs a tensor that no file holds"},
    InspectRule{"tensor-shape", Severity::Error,
                "a tensor has another shape or dtype than the model needs"},
    InspectRule{"tensor-unused", Severity::Error,
                "the files hold tensors that the model does not use"},
    InspectRule{"quant-disagrees", Severity::Error,
                "config and files disagree about a layer being quantised"},
    InspectRule{"scale-missing", Severity::Error, "an 8-bit weight has no scale of a known name"},
    InspectRule{"scale-orphan", Severity::Error, "a scale belongs to no 8-bit weight"},
    InspectRule{"scale-shape", Severity::Error,
                "the scales are of another shape than the strategy says"},
    InspectRule{"scale-not-finite", Severity::Error, "a scale is NaN or infinite"},
    InspectRule{"scale-negative", Severity::Error, "a scale is below zero"},
    InspectRule{"scale-zero", Severity::Error, "a scale is zero"},
    InspectRule{"scale-denormal", Severity::Warning,
                "a scale is subnormal in its dtype and has lost digits"},
    InspectRule{"scale-too-large", Severity::Error,
                "a scale is above 2^40: float32 may not hold its products"},
    InspectRule{"scale-too-small", Severity::Warning,
                "an input scale, or a tensor with its median scale, is below 2^-40"},
    InspectRule{"scale-inverse", Severity::Warning,
                "the scales look like reciprocals: the weights would be absurdly large"},
    InspectRule{"scale-one", Severity::Warning,
                "every scale is 1 while the codes use the full range: none may have been written"},
    InspectRule{"weight-not-finite", Severity::Error, "a weight is NaN or infinite"},
    InspectRule{"weight-too-large", Severity::Error,
                "a weight is above 2^40: float32 may not hold its products"},
    InspectRule{"weight-subnormal", Severity::Warning,
                "over half of a tensor is below 2^-126: kernels may take it for zero"},
    InspectRule{
        "range-unused", Severity::Warning,
        "no code is above a sixteenth of the range: the scale is too large and digits are lost"},
    InspectRule{"layer", Severity::Error, "a layer cannot be read for another reason"},
    InspectRule{"pattern-unused", Severity::Warning,
                "a target or ignore entry of the quantisation config matches no module"},
    InspectRule{"tokenizer", Severity::Error, "the tokenizer cannot be read"},
    InspectRule{"template", Severity::Error, "a chat template cannot be read"},
    InspectRule{"template-fails", Severity::Error,
                "the default chat template makes no prompt of one message of a user"},
    InspectRule{"template-token", Severity::Warning,
                "a chat template writes a control token that the tokenizer splits"},
    InspectRule{"special-token", Severity::Warning,
                "a special token of tokenizer_config.json is not in the tokenizer"},
    InspectRule{"added-token", Severity::Warning,
                "added_tokens_decoder of tokenizer_config.json is not what tokenizer.json says"},
    InspectRule{"id-outside-vocabulary", Severity::Error,
                "a token id of a config is not below the size of the vocabulary"},
    InspectRule{"id-not-a-token", Severity::Warning, "a token id of a config has no token"},
    InspectRule{"eos-disagrees", Severity::Warning,
                "the end ids of a config are not the tokenizer's end token"},
    InspectRule{"generation-config", Severity::Error, "generation_config.json cannot be used"},
    InspectRule{"duplicate-key", Severity::Warning, "an object of a config has a key twice"},
    InspectRule{"left-out", Severity::Note, "a check was left out"},
    InspectRule{"remark", Severity::Note, "something has no effect"},
};

}  // namespace

std::span<const InspectRule> inspect_rules() {
  return kRules;
}

bool Inspection::clean() const {
  return std::all_of(findings.begin(), findings.end(),
                     [](const Finding& f) { return f.rule->severity == Severity::Note; });
}

void TensorSet::add(StoredTensor tensor) {
  by_name_.emplace(tensor.name, tensors_.size());
  tensors_.push_back(tensor);
}

const StoredTensor* TensorSet::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

void Findings::add(std::string_view id, std::string subject, std::string expected, std::string got,
                   std::string hint, std::vector<std::string> names) {
  const auto rule =
      std::find_if(kRules.begin(), kRules.end(), [&](const InspectRule& r) { return r.id == id; });
  OCTET_CHECK(rule != kRules.end(), "no rule \"{}\"", id);
  subjects_.insert(subject);
  list_.push_back({&*rule, std::move(subject), std::move(expected), std::move(got), std::move(hint),
                   std::move(names)});
}

std::vector<Finding> Findings::take() {
  std::stable_sort(list_.begin(), list_.end(),
                   [](const Finding& a, const Finding& b) { return a.rule < b.rule; });
  return std::move(list_);
}

std::optional<std::string_view> module_of_weight(std::string_view tensor) {
  constexpr std::string_view kEnd = ".weight";
  if (!tensor.ends_with(kEnd)) return std::nullopt;
  return tensor.substr(0, tensor.size() - kEnd.size());
}

Inspection inspect(const std::filesystem::path& model, ThreadPool& pool,
                   const std::function<void(uint64_t, uint64_t)>& progress) {
  Findings findings;
  const std::unique_ptr<Inspected> opened = open_for_inspection(model, findings);
  inspect_structure(*opened, findings);
  inspect_patterns(*opened, findings);
  inspect_text(*opened, findings);
  inspect_values(*opened, pool, progress, findings);
  Inspection out;
  out.model = model_name(opened->dir);
  for (const StoredTensor& tensor : opened->tensors.all()) {
    ++out.tensors;
    out.quantised += is_f8(tensor.dtype) ? 1 : 0;
    out.bytes += tensor.bytes.size();
  }
  out.findings = findings.take();
  return out;
}

}  // namespace octet
