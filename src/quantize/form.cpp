#include "quantize/form.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kForms{
    QuantForm{"fp8-dynamic", "FP8_DYNAMIC", ScaleTile::row(), QuantForm::Input::Token},
    QuantForm{"fp8-block", "FP8_BLOCK", ScaleTile::block(128, 128), QuantForm::Input::Group128},
    QuantForm{"fp8-static", "FP8", ScaleTile::tensor(), QuantForm::Input::Tensor},
    QuantForm{"fp8-weight-only", "group_0", ScaleTile::row(), QuantForm::Input::None},
};

Json args(std::string_view strategy, bool dynamic) {
  return {{"dynamic", dynamic},
          {"num_bits", 8},
          {"strategy", strategy},
          {"symmetric", true},
          {"type", "float"}};
}

Json weight_args(const QuantForm& form) {
  switch (form.weight.granularity()) {
    case Granularity::Tensor:
      return args("tensor", false);
    case Granularity::Row:
      return args("channel", false);
    case Granularity::Group: {
      Json json = args("group", false);
      json["group_size"] = form.weight.cols;
      return json;
    }
    case Granularity::Block: {
      Json json = args("block", false);
      json["block_structure"] = {form.weight.rows, form.weight.cols};
      return json;
    }
  }
  return {};
}

Json input_args(const QuantForm& form) {
  switch (form.input) {
    case QuantForm::Input::None:
      return nullptr;
    case QuantForm::Input::Token:
      return args("token", true);
    case QuantForm::Input::Group128: {
      Json json = args("group", true);
      json["group_size"] = 128;
      return json;
    }
    case QuantForm::Input::Tensor:
      return args("tensor", false);
  }
  return nullptr;
}

}  // namespace

std::span<const QuantForm> quant_forms() {
  return kForms;
}

const QuantForm& find_form(std::string_view name) {
  std::string known;
  for (const QuantForm& form : kForms) {
    if (form.name == name) return form;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", form.name);
  }
  throw_error(Code::BadInput, fmt::format("--scheme {}: no such scheme", name),
              fmt::format("schemes: {}", known));
}

std::string quantization_config(const QuantForm& form, std::string_view head) {
  const std::string_view format =
      form.input == QuantForm::Input::None ? "naive-quantized" : "float-quantized";
  Json group{{"format", format},
             {"input_activations", input_args(form)},
             {"output_activations", nullptr},
             {"targets", {"Linear"}},
             {"weights", weight_args(form)}};
  Json json{{"config_groups", {{form.group, std::move(group)}}},
            {"format", format},
            {"global_compression_ratio", nullptr},
            {"ignore", {head}},
            {"kv_cache_scheme", nullptr},
            {"quant_method", "compressed-tensors"},
            {"quantization_status", "compressed"}};
  return json.dump(2);
}

}  // namespace octet
