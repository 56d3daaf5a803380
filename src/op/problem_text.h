#pragma once
// The problems of operations without schemes in words, as a quarantine entry names them.
#include <string>
#include <type_traits>

#include "op/attention.h"
#include "op/gather.h"
#include "op/norm.h"
#include "op/quantize.h"
#include "op/rope.h"

namespace octet {

std::string problem_text(const Attention::Problem& problem);  // "heads 9/3x64, KV bf16"
std::string problem_text(const RmsNorm::Problem& problem);    // "width 576"
std::string problem_text(const Rope::Problem& problem);    // "head_dim 64, rotary_dim 64, KV bf16"
std::string problem_text(const Gather::Problem& problem);  // "table bf16"
std::string problem_text(const Quantize::Problem& problem);  // "f8e4m3/row/f32/dynamic"

// Of operations whose kernels take every problem.
template <class Problem>
requires std::is_empty_v<Problem> std::string problem_text(const Problem& /*problem*/) {
  return "any";
}

}  // namespace octet
