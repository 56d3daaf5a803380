#pragma once
// Joint resolution: which arithmetic and which kernel run a layer, and why every other pair does
// not.
#include <optional>
#include <span>
#include <vector>

#include "plan/policy.h"
#include "plan/schemes.h"

namespace octet {

// One (scheme, kernel) pair and why it cannot run; no refusals: it could.
struct LinearAttempt {
  const LinearKernel* kernel = nullptr;
  bool refined =
      false;  // the kernel serves the weight scales by a finer tile than the checkpoint stores
  LinearProblem problem;  // as the scheme makes it; meaningless when the scheme refuses
  std::vector<Refusal> refusals;
};

// Every pair in the order tried, and the first without a refusal.
struct Resolution {
  std::vector<LinearAttempt> attempts;
  std::optional<size_t> chosen;

  const LinearKernel* kernel() const { return chosen ? attempts[*chosen].kernel : nullptr; }
  // The problem of the chosen pair. Requires chosen.
  const LinearProblem& problem() const { return attempts[*chosen].problem; }
};

// Judges every kernel of `catalogue` with its scheme. Pure. The order is a sort key and nothing
// else: (rank of the scheme by policy, exact before refined, preference, name).
Resolution resolve(const LayerQuant& quant, LayerShape shape, const DeviceInfo& device,
                   std::span<const LinearKernel* const> catalogue, std::span<const Scheme> schemes,
                   const LayerPolicy& policy);

}  // namespace octet
