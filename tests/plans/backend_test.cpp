// --linear-backend: sets of kernels bound by one word.
#include <gmock/gmock.h>

#include "base/error.h"
#include "model/prepare.h"
#include "plan/explain.h"
#include "testing/tiny_checkpoint.h"
#include "tests/integration/process.h"
#include "tests/plans/profiles.h"

namespace octet {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kDynamic = "testing/data/fp8/ct-dynamic";
constexpr const char* kWeightOnly = "testing/data/fp8/ct-weight-only";

DeviceInfo profile(const std::string& name) {
  for (const Profile& p : all_profiles()) {
    if (p.name == name) return p.info;
  }
  throw_error(Code::Bug, "no profile " + name);
}

ModelPlan plan(const std::filesystem::path& model, const std::string& device,
               std::string_view backend, Policy policy = {}) {
  PlanOptions options;
  options.policy = std::move(policy);
  options.policy.backend = find_backend(backend);
  return prepare(model, false, profile(device), std::move(options)).plan;
}

// The kernels of the quantised layers, which must be one, and of the head.
struct Bound {
  std::string quantised, head;
};
Bound bound(const ModelPlan& plan) {
  Bound out;
  for (const PlannedLayers& group : plan.layers) {
    const std::string name =
        group.resolution.chosen ? std::string(group.resolution.kernel()->name) : "none";
    if (group.pattern == "lm_head") {
      out.head = name;
    } else {
      EXPECT_TRUE(out.quantised.empty() || out.quantised == name) << name;
      out.quantised = name;
      EXPECT_TRUE(group.forced);
    }
  }
  return out;
}

TEST(LinearBackend, EachBindsItsKernelsAndTheHeadIsResolvedAsUsual) {
  const std::string head = "opencl.linear.plain.float.subgroup";
  const Bound xpu = bound(plan(kDynamic, "b580", "xpu"));
  EXPECT_THAT(xpu.quantised, HasSubstr("opencl.linear.w8a8.f8."));
  const Bound woq = bound(plan(kDynamic, "b580", "xpu_woq"));
  EXPECT_THAT(woq.quantised, HasSubstr("opencl.linear.w8a16.f8."));
  EXPECT_EQ(xpu.head, woq.head);
  EXPECT_EQ(bound(plan(kDynamic, "cpu-avx2", "torch")).quantised, "cpu.linear.w8a8.f8.ref");
  EXPECT_EQ(bound(plan(kDynamic, "cpu-avx2", "torch")).head, "cpu.linear.plain.float.avx2");
  const Bound reference = bound(plan(kDynamic, "cpu-avx512-bf16", "reference"));
  EXPECT_EQ(reference.quantised, "cpu.linear.w8a8.f8.ref");
  EXPECT_EQ(reference.head, "cpu.linear.plain.float.ref");
  EXPECT_EQ(bound(plan(kDynamic, "plain", "torch")).quantised, "opencl.linear.w8a8.f8.plain");
}

TEST(LinearBackend, TorchSaysWhatItMeansAndOthersSayNothing) {
  EXPECT_THAT(
      plan(kDynamic, "cpu-avx2", "torch").notes,
      Contains(AllOf(HasSubstr("reference formulation"), HasSubstr("no kernel of PyTorch"))));
  EXPECT_THAT(plan(kDynamic, "cpu-avx2", "reference").notes, Not(Contains(HasSubstr("backend"))));
}

TEST(LinearBackend, PlansMarkTheLayersThatItBinds) {
  const ModelPlan p = plan(kDynamic, "b60", "xpu");
  EXPECT_THAT(explain(p), HasSubstr("N=64 K=64  (--linear-backend xpu)\n"));
  EXPECT_THAT(explain(p), HasSubstr("asks for the W8A8 kernels of OpenCL devices"));
  EXPECT_THAT(to_json(p), HasSubstr("\"backend\": \"xpu\""));
  EXPECT_THAT(to_json(plan(kDynamic, "b60", "auto")), Not(HasSubstr("\"backend\"")));
}

TEST(LinearBackend, OfAnotherDeviceIsAFailureWithTheReason) {
  for (const char* backend : {"xpu", "xpu_woq"}) {
    const ModelPlan p = plan(kDynamic, "cpu-avx2", backend);
    EXPECT_THAT(p.failures,
                ::testing::ElementsAre(AllOf(HasSubstr(backend), HasSubstr("OpenCL devices"),
                                             HasSubstr("the device is cpu"))));
    EXPECT_TRUE(p.layers[0].resolution.chosen);  // the rest is planned as usual
  }
  EXPECT_EQ(run_octet({"plan", kDynamic, "--linear-backend", "xpu"}).status, 3);
}

TEST(LinearBackend, ALayerThatIsBoundAndCannotRunIsAFailureWithEveryReason) {
  const ModelPlan p = plan(kWeightOnly, "b580", "xpu");
  ASSERT_FALSE(p.failures.empty());
  EXPECT_THAT(p.failures[0],
              AllOf(HasSubstr("the checkpoint quantises weights only"),
                    HasSubstr("--linear-backend xpu asks for"), HasSubstr("leave out --linear")));
}

TEST(LinearBackend, NothingBoundIsBadInputNamingBothDtypes) {
  try {
    plan("testing/data/archs/llama-plain", "b580", "xpu_woq");
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::BadInput);
    EXPECT_THAT(error.message(), AllOf(HasSubstr("xpu_woq binds no layer of llama-plain"),
                                       HasSubstr("f8e4m3"), HasSubstr("stored as bf16")));
  }
  EXPECT_EQ(run_octet({"plan", kDynamic, "--linear-backend", "cutlass"}).status, 2);
  EXPECT_THROW(find_backend("cutlass"), Error);
}

TEST(LinearBackend, AKernelRuleGoesBeforeIt) {
  Policy policy;
  policy.forced.push_back({"q_proj", "opencl.linear.w8a16.f8.plain"});
  const ModelPlan p = plan(kDynamic, "b580", "xpu", policy);
  for (const PlannedLayers& group : p.layers) {
    if (group.pattern == "lm_head") continue;
    const bool ruled = group.pattern.ends_with("q_proj");
    EXPECT_EQ(group.resolution.kernel()->name == "opencl.linear.w8a16.f8.plain", ruled);
    EXPECT_EQ(group.backend, ruled ? "" : "xpu");
  }
}

TEST(LinearBackend, NamesOfTheFlagAreThoseOfTheTable) {
  std::string help = run_octet({"plan", "--help"}).out;
  for (const LinearBackend& backend : linear_backends())
    EXPECT_THAT(help, HasSubstr(std::string(backend.name)));
}

}  // namespace
}  // namespace octet
