#include "op/problem_text.h"

#include <fmt/format.h>

namespace octet {

std::string problem_text(const Attention::Problem& problem) {
  return fmt::format("heads {}/{}x{}, KV {}", problem.heads, problem.kv_heads, problem.head_dim,
                     name(problem.kv_dtype));
}

std::string problem_text(const RmsNorm::Problem& problem) {
  return fmt::format("width {}", problem.width);
}

std::string problem_text(const Rope::Problem& problem) {
  return fmt::format("head_dim {}, rotary_dim {}, KV {}{}", problem.head_dim, problem.rotary_dim,
                     name(problem.kv_dtype), problem.interleaved ? ", interleaved" : "");
}

std::string problem_text(const Gather::Problem& problem) {
  return fmt::format("table {}", name(problem.table));
}

std::string problem_text(const Quantize::Problem& problem) {
  return to_string(problem.output);
}

}  // namespace octet
