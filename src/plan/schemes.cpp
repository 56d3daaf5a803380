#include "plan/schemes.h"

#include <array>

namespace octet {
namespace {

constexpr std::string_view kNotF8 = "weights are not fp8";

SchemeResult w8a8(const LayerQuant& quant, LayerShape shape) {
  if (!is_f8(quant.weight.dtype)) return Refusal{RefusalCode::Scheme, std::string(kNotF8)};
  if (!quant.input) {
    return Refusal{RefusalCode::Scheme, "the checkpoint quantises weights only, not activations"};
  }
  LinearProblem problem{SchemeId::W8A8, shape.n, shape.k, quant.weight, quant.input};
  return problem;
}

// The input specification of the checkpoint, if any, is not used.
SchemeResult w8a16(const LayerQuant& quant, LayerShape shape) {
  if (!is_f8(quant.weight.dtype)) return Refusal{RefusalCode::Scheme, std::string(kNotF8)};
  return LinearProblem{SchemeId::W8A16, shape.n, shape.k, quant.weight, std::nullopt};
}

SchemeResult plain(const LayerQuant& quant, LayerShape shape) {
  if (is_f8(quant.weight.dtype)) return Refusal{RefusalCode::Scheme, "weights are fp8"};
  return LinearProblem{SchemeId::Plain, shape.n, shape.k, quant.weight, std::nullopt};
}

constexpr std::array kSchemes{Scheme{SchemeId::W8A8, w8a8}, Scheme{SchemeId::W8A16, w8a16},
                              Scheme{SchemeId::Plain, plain}};

}  // namespace

std::span<const Scheme> schemes() {
  return kSchemes;
}

SchemeId declared_scheme(const LayerQuant& quant) {
  if (!is_f8(quant.weight.dtype)) return SchemeId::Plain;
  return quant.input ? SchemeId::W8A8 : SchemeId::W8A16;
}

}  // namespace octet
