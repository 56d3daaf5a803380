#pragma once
// The closed table of schemes: how a checkpoint's words for a layer become arithmetic.
#include <span>
#include <variant>

#include "op/linear.h"

namespace octet {

// Output and input features of one layer on one rank, in elements.
struct LayerShape {
  int64_t n = 0;
  int64_t k = 0;
  constexpr auto operator<=>(const LayerShape&) const = default;
};

// The problem a kernel would solve, or why the scheme does not fit the checkpoint.
using SchemeResult = std::variant<LinearProblem, Refusal>;

struct Scheme {
  SchemeId id;
  SchemeResult (*apply)(const LayerQuant&, LayerShape);
};

std::span<const Scheme> schemes();

// What the checkpoint asks for: W8A8 where activations are quantised, W8A16 where only weights are,
// Plain otherwise.
SchemeId declared_scheme(const LayerQuant& quant);

}  // namespace octet
