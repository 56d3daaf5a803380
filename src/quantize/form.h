#pragma once
// The FP8 forms that `octet quantize` writes: the presets of compressed-tensors under Octet's
// names.
#include <span>
#include <string>
#include <string_view>

#include "num/quant_spec.h"

namespace octet {

struct QuantForm {
  std::string_view name;   // of --scheme
  std::string_view group;  // of config_groups
  ScaleTile weight;        // over the whole matrix
  // How the checkpoint says that inputs are quantised; None: weights only.
  enum class Input : uint8_t { None, Token, Group128, Tensor } input;

  // Static input scales need a calibration text.
  constexpr bool calibrated() const { return input == Input::Tensor; }
};

std::span<const QuantForm> quant_forms();

// The form called `name`. Throws BadInput listing the forms.
const QuantForm& find_form(std::string_view name);

// The value of "quantization_config" for a form, as JSON text: what compressed-tensors writes for
// the preset, null and empty fields included.
// `head` is the output head's module, which stays as it is.
std::string quantization_config(const QuantForm& form, std::string_view head = "lm_head");

}  // namespace octet
