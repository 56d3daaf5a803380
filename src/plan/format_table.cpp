#include "plan/format_table.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/quant_config.h"

namespace octet {
namespace {

using Json = nlohmann::json;

// A label and the QuantizationArgs of compressed-tensors that it stands for.
struct Words {
  std::string_view label;
  std::string_view args;  // members of the JSON object besides "type"; empty: null
};

constexpr std::array<Words, 4> kWeights{{
    {"tensor", R"("strategy": "tensor")"},
    {"channel", R"("strategy": "channel")"},
    {"group of 128", R"("strategy": "group", "group_size": 128)"},
    {"block of 128 x 128", R"("strategy": "block", "block_structure": [128, 128])"},
}};

constexpr std::array<Words, 6> kInputs{{
    {"not quantised", ""},
    {"static tensor", R"("strategy": "tensor", "dynamic": false)"},
    {"dynamic token", R"("strategy": "token", "dynamic": true)"},
    {"dynamic group of 128", R"("strategy": "group", "group_size": 128, "dynamic": true)"},
    {"dynamic group of 100", R"("strategy": "group", "group_size": 100, "dynamic": true)"},
    {"dynamic tensor, computed per token", R"("strategy": "tensor", "dynamic": true)"},
}};

constexpr Words kMxWeight{"MX group of 32 (E8M0)",
                          R"("strategy": "group", "group_size": 32, "scale_dtype": "uint8")"};
constexpr Words kMxInput{
    "dynamic MX group of 32",
    R"("strategy": "group", "group_size": 32, "dynamic": true, "scale_dtype": "uint8")"};

Json args_of(const Words& words) {
  if (words.args.empty()) return nullptr;
  return Json::parse(fmt::format(R"({{"num_bits": 8, "type": "float", {}}})", words.args));
}

LayerQuant parsed(const Words& weight, const Words& input) {
  const Json group{
      {"targets", {"Linear"}}, {"weights", args_of(weight)}, {"input_activations", args_of(input)}};
  const Json config{{"quantization_config",
                     {{"quant_method", "compressed-tensors"},
                      {"format", "float-quantized"},
                      {"config_groups", {{"group_0", group}}}}}};
  const auto quant = QuantConfig::parse(config).match("model.layers.0.self_attn.q_proj");
  OCTET_CHECK(quant.has_value(), "{} x {}", weight.label, input.label);
  return *quant;
}

FormatRow row(std::string_view weight, std::string_view input, const LayerQuant& quant) {
  FormatRow made{std::string(weight), std::string(input), quant, {}};
  for (const FormatLevel& level : format_levels()) {
    made.choices.push_back(
        resolve(quant, kFormatShape, level.device, kernels<LinearKernel>(), schemes(), {}));
  }
  return made;
}

std::string cell(const Resolution& choice, SchemeId declared) {
  if (!choice.chosen) return "refused";
  std::string text = fmt::format("`{}`", choice.kernel()->name);
  const SchemeId scheme = choice.problem().scheme;
  if (scheme != declared) text += fmt::format(" as {}", name(scheme));
  if (choice.attempts[*choice.chosen].refined) text += ", scales repeated";
  return text;
}

}  // namespace

const std::vector<FormatLevel>& format_levels() {
  static const std::vector<FormatLevel> kLevels = [] {
    constexpr Features kAll{Feature::Avx2, Feature::F16c, Feature::Avx512, Feature::Avx512Bf16,
                            Feature::Avx512Vbmi};
    std::vector<FormatLevel> levels;
    for (const std::string_view isa : {"baseline", "avx2", "avx512"}) {
      DeviceInfo device;
      device.name = isa;
      device.features = mask_isa(kAll, isa);
      levels.push_back({isa, device});
    }
    return levels;
  }();
  return kLevels;
}

std::vector<FormatRow> format_rows() {
  std::vector<FormatRow> rows;
  for (const Words& weight : kWeights) {
    for (const Words& input : kInputs) {
      rows.push_back(row(weight.label, input.label, parsed(weight, input)));
    }
  }
  for (const Words& input : {kInputs[0], kMxInput}) {
    rows.push_back(row(kMxWeight.label, input.label, parsed(kMxWeight, input)));
  }
  for (const DType dtype : {DType::BF16, DType::F16, DType::F32}) {
    LayerQuant quant;
    quant.weight.dtype = dtype;
    rows.push_back(row(fmt::format("none: {}", name(dtype)), kInputs[0].label, quant));
  }
  return rows;
}

std::string format_table_markdown() {
  std::string head = "| weight scales | input | scheme |";
  std::string rule = "| --- | --- | --- |";
  for (const FormatLevel& level : format_levels()) {
    head += fmt::format(" {} |", level.isa);
    rule += " --- |";
  }
  std::string out = head + "\n" + rule + "\n";
  for (const FormatRow& r : format_rows()) {
    const SchemeId declared = declared_scheme(r.quant);
    out += fmt::format("| {} | {} | {} |", r.weight, r.input, name(declared));
    for (const Resolution& choice : r.choices) out += fmt::format(" {} |", cell(choice, declared));
    out += '\n';
  }
  return out;
}

}  // namespace octet
