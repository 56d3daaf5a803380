// What holds for the catalogue of a real device and not for the emulated one.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "op/absmax.h"
#include "op/attention.h"
#include "op/gather.h"
#include "op/linear.h"
#include "op/norm.h"
#include "op/pointwise.h"
#include "op/quantize.h"
#include "op/rope.h"
#include "op/sample.h"
#include "tests/conformance/devices.h"
#include "tests/conformance/linear_case.h"

namespace octet::conformance {
namespace {

template <class K>
bool runs_anywhere(const K& kernel) {
  return kernel.device == DeviceKind::Cpu && kernel.needs.empty();
}

template <class Op>
void expect_reference() {
  const auto all = kernels<Kernel<Op>>();
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const auto* k) { return runs_anywhere(*k); }))
      << Op::kName;
}

template <class... Ops>
void expect_references() {
  (expect_reference<Ops>(), ...);
}

TEST(Catalog, EveryOperationHasACpuReference) {
  for (const SchemeId scheme : {SchemeId::W8A8, SchemeId::W8A16, SchemeId::Plain}) {
    const auto all = kernels<LinearKernel>();
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const LinearKernel* k) {
      return k->scheme == scheme && runs_anywhere(*k);
    })) << name(scheme);
  }
  expect_references<Attention, Gather, RmsNorm, SiluMul, RoundBf16, Quantize, Rope, ArgMax, TopK,
                    LogProb, Sample, AbsMax>();
}

TEST(LinearProblems, EveryProblemRunsAtEveryInstructionSetOfThisHost) {
  for (const Level& level : levels()) {
    for (const LinearCase& c : linear_cases()) {
      const LinearData data(c, 1, 1);
      int able = 0;
      for (const LinearKernel* kernel : kernels<LinearKernel>()) {
        if (kernel->scheme != c.scheme) continue;
        const std::vector<Refusal> no = refusals(*kernel, data.problem(), level.info);
        able += no.empty() ? 1 : 0;
        for (const Refusal& refusal : no) EXPECT_FALSE(refusal.detail.empty()) << kernel->name;
      }
      EXPECT_GT(able, 0) << c.name << " at " << level.isa;
    }
  }
}

TEST(LinearProblems, AKernelAboveTheMaskedInstructionSetIsRefusedForItsFeature) {
  const LinearData data(linear_cases().front(), 1, 1);
  for (const LinearKernel* kernel : kernels<LinearKernel>()) {
    const std::vector<Refusal> no = refusals(*kernel, data.problem(), levels().front().info);
    const bool names_feature = std::any_of(
        no.begin(), no.end(), [](const Refusal& r) { return r.code == RefusalCode::Feature; });
    EXPECT_EQ(names_feature, !kernel->needs.empty()) << kernel->name;
  }
}
}  // namespace
}  // namespace octet::conformance
