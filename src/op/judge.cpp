// Judgement of the operations without schemes: every capability has one sentence for its refusal.
#include <fmt/format.h>

#include "op/attention.h"
#include "op/gather.h"
#include "op/norm.h"
#include "op/quantize.h"
#include "op/rope.h"

namespace octet {
namespace {

void need_multiple(int64_t value, int64_t multiple, std::string_view what,
                   std::vector<Refusal>& out) {
  if (value % multiple != 0) {
    out.push_back(
        {RefusalCode::Shape, fmt::format("{} {} is not a multiple of {}", what, value, multiple)});
  }
}

void need_dtype(EnumSet<DType> set, DType dtype, std::string_view what, std::vector<Refusal>& out) {
  if (!set.has(dtype)) {
    out.push_back({RefusalCode::Input,
                   fmt::format("{} {} not in {{{}}}", what, name(dtype), to_string(set))});
  }
}

}  // namespace

void judge(const Attention::Caps& caps, const Attention::Problem& problem,
           std::vector<Refusal>& out) {
  need_dtype(caps.kv_dtypes, problem.kv_dtype, "KV dtype", out);
  need_multiple(problem.head_dim, caps.head_dim_multiple, "head_dim", out);
  if (problem.head_dim > caps.max_head_dim) {
    out.push_back({RefusalCode::Shape,
                   fmt::format("head_dim {} is over {}", problem.head_dim, caps.max_head_dim)});
  }
}

void judge(const RmsNorm::Caps& caps, const RmsNorm::Problem& problem, std::vector<Refusal>& out) {
  need_multiple(problem.width, caps.width_multiple, "width", out);
}

void judge(const Rope::Caps& caps, const Rope::Problem& problem, std::vector<Refusal>& out) {
  need_dtype(caps.kv_dtypes, problem.kv_dtype, "KV dtype", out);
  need_multiple(problem.rotary_dim, caps.rotary_multiple, "rotary_dim", out);
  if (problem.interleaved && !caps.interleaved)
    out.push_back({RefusalCode::Special, "rotates halves of a head, not neighbouring pairs"});
}

void judge(const Quantize::Caps& caps, const Quantize::Problem& problem,
           std::vector<Refusal>& out) {
  const QuantSpec& spec = problem.output;
  need_dtype(caps.outputs, spec.dtype, "output", out);
  if (!is_f8(spec.dtype)) return;
  const bool one_scale = spec.tile.granularity() == Granularity::Tensor;
  if (!caps.scales.has(spec.tile.granularity())) {
    out.push_back(
        {RefusalCode::ActivationScale, fmt::format("activation scale {} not in {{{}}}",
                                                   to_string(spec.tile), to_string(caps.scales))});
  } else if (one_scale && spec.timing == ScaleTiming::Dynamic) {
    out.push_back({RefusalCode::ActivationScale,
                   "activation scale tensor is dynamic: a row would depend on its batch"});
  } else if (!one_scale && spec.timing == ScaleTiming::Static) {
    out.push_back({RefusalCode::ActivationScale,
                   fmt::format("activation scale {} is static: static input scales are one for the "
                               "whole tensor",
                               to_string(spec.tile))});
  }
  if (!caps.scale_dtypes.has(spec.scale_dtype)) {
    out.push_back({RefusalCode::ScaleDtype,
                   fmt::format("activation scale dtype {} not in {{{}}}", name(spec.scale_dtype),
                               to_string(caps.scale_dtypes))});
  }
}

void judge(const Gather::Caps& caps, const Gather::Problem& problem, std::vector<Refusal>& out) {
  need_dtype(caps.tables, problem.table, "table dtype", out);
}

}  // namespace octet
