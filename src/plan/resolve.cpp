#include "plan/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace octet {
namespace {

// The carrier of an unquantised input: float32 where the kernel takes it, else the best it takes.
DType carrier_for(const LinearKernel& kernel, Carrier policy) {
  if (policy == Carrier::F32 || kernel.caps.inputs.has(DType::F32)) return DType::F32;
  return kernel.caps.inputs.has(DType::BF16) ? DType::BF16 : DType::F32;
}

// The coarsest tile with another granularity that `caps` has and that says the same by repeating
// scales.
std::optional<ScaleTile> refined_tile(const ScaleTile& tile, EnumSet<Granularity> caps) {
  ScaleTile finer = tile;
  switch (tile.granularity()) {
    case Granularity::Tensor:
      if (caps.has(Granularity::Row)) return ScaleTile::row();
      return std::nullopt;
    case Granularity::Row:
      return std::nullopt;
    case Granularity::Block:
      if (!caps.has(Granularity::Group) || tile.cols == kWhole) return std::nullopt;
      finer.rows = 1;
      finer.first_row = 0;
      return finer;
    case Granularity::Group:
      return std::nullopt;
  }
  return std::nullopt;
}

LinearAttempt judge_pair(const LinearKernel& kernel, const SchemeResult& applied,
                         const DeviceInfo& device, const LayerPolicy& policy) {
  LinearAttempt attempt;
  attempt.kernel = &kernel;
  if (const auto* no = std::get_if<Refusal>(&applied)) {
    attempt.refusals = detail::device_refusals(kernel.device, kernel.needs, device);
    if (attempt.refusals.empty() || attempt.refusals.front().code != RefusalCode::Device) {
      attempt.refusals.push_back(*no);
    }
  } else {
    attempt.problem = std::get<LinearProblem>(applied);
    attempt.problem.input = carrier_for(kernel, policy.carrier);
    attempt.refusals = refusals(kernel, attempt.problem, device);
    const ScaleTile& tile = attempt.problem.weight.tile;
    if (is_f8(attempt.problem.weight.dtype) && !kernel.caps.weight_scales.has(tile.granularity())) {
      if (const auto finer = refined_tile(tile, kernel.caps.weight_scales)) {
        LinearProblem problem = attempt.problem;
        problem.weight.tile = *finer;
        attempt.problem = problem;
        attempt.refined = true;
        attempt.refusals = refusals(kernel, problem, device);
      }
    }
    if (policy.quarantine != nullptr) {
      const QuarantineEntry key = quarantine_key(kernel, attempt.problem, device);
      if (auto bad = policy.quarantine->refusal(key)) attempt.refusals.push_back(*std::move(bad));
    }
  }
  if (std::find(policy.disabled.begin(), policy.disabled.end(), kernel.name) !=
      policy.disabled.end()) {
    attempt.refusals.push_back({RefusalCode::Disabled, "disabled by --disable"});
  }
  if (policy.forced && *policy.forced != kernel.name) {
    attempt.refusals.push_back(
        {RefusalCode::Disabled, fmt::format("--kernel asks for {}", *policy.forced)});
  }
  if (policy.backend != nullptr && !has_kernel(*policy.backend, kernel)) {
    attempt.refusals.push_back(
        {RefusalCode::Disabled, fmt::format("--linear-backend {} asks for {}", policy.backend->name,
                                            policy.backend->words)});
  }
  return attempt;
}

}  // namespace

Resolution resolve(const LayerQuant& quant, LayerShape shape, const DeviceInfo& device,
                   std::span<const LinearKernel* const> catalogue, std::span<const Scheme> schemes,
                   const LayerPolicy& policy) {
  Resolution resolution;
  resolution.attempts.reserve(catalogue.size());
  for (const Scheme& scheme : schemes) {
    const SchemeResult applied = scheme.apply(quant, shape);
    for (const LinearKernel* kernel : catalogue) {
      if (kernel->scheme == scheme.id) {
        resolution.attempts.push_back(judge_pair(*kernel, applied, device, policy));
      }
    }
  }
  const auto key = [&](const LinearAttempt& a) {
    const bool preferred = policy.prefer == a.kernel->scheme;
    return std::make_tuple(preferred ? 0 : 1, a.refined ? 1 : 0, -a.kernel->preference,
                           a.kernel->name);
  };
  std::sort(resolution.attempts.begin(), resolution.attempts.end(),
            [&](const LinearAttempt& a, const LinearAttempt& b) { return key(a) < key(b); });
  for (size_t i = 0; i < resolution.attempts.size(); ++i) {
    if (resolution.attempts[i].refusals.empty()) {
      resolution.chosen = i;
      break;
    }
  }
  return resolution;
}

}  // namespace octet
