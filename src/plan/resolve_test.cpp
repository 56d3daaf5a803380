#include "plan/resolve.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace octet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A kernel of a hand-made catalogue; nothing here runs.
LinearKernel kernel(std::string_view name, DeviceKind device, SchemeId scheme, int preference,
                    EnumSet<Granularity> scales) {
  LinearKernel k{};
  k.name = name;
  k.device = device;
  k.scheme = scheme;
  k.preference = preference;
  k.caps.weight_dtypes = {DType::F8E4M3};
  k.caps.weight_scales = scales;
  if (scheme == SchemeId::W8A8) {
    k.caps.activation_scales = {Granularity::Tensor, Granularity::Row, Granularity::Group};
    k.caps.activation_dtypes = {DType::F8E4M3};
  }
  return k;
}

LayerQuant quant(ScaleTile weight, std::optional<ScaleTile> input) {
  LayerQuant q;
  q.weight = {DType::F8E4M3, weight, DType::BF16, ScaleTiming::Static};
  if (input) q.input = QuantSpec{DType::F8E4M3, *input, DType::F32, ScaleTiming::Dynamic};
  return q;
}

const LayerQuant kChannel = quant(ScaleTile::row(), ScaleTile::row());
const LayerQuant kBlock = quant(ScaleTile::block(128, 128), ScaleTile::group(128));
const LayerQuant kBlockWeightsOnly = quant(ScaleTile::block(128, 128), std::nullopt);

DeviceInfo device(DeviceKind kind, Features features = {}) {
  DeviceInfo info;
  info.kind = kind;
  info.name = "test device";
  info.features = features;
  return info;
}

// The catalogue of an OpenCL device as vLLM has it: W8A16 up to rows, W8A8 for everything, W8A16
// preferred.
struct OpenClCatalogue {
  LinearKernel w8a16 = kernel("opencl.linear.w8a16.f8", DeviceKind::OpenCl, SchemeId::W8A16, 220,
                              {Granularity::Tensor, Granularity::Row});
  LinearKernel w8a8 = kernel("opencl.linear.w8a8.f8", DeviceKind::OpenCl, SchemeId::W8A8, 200,
                             {Granularity::Tensor, Granularity::Row, Granularity::Block});
  LinearKernel cpu =
      kernel("cpu.linear.w8a8.f8.ref", DeviceKind::Cpu, SchemeId::W8A8, 20,
             {Granularity::Tensor, Granularity::Row, Granularity::Group, Granularity::Block});

  Resolution resolve(const LayerQuant& q, const LayerPolicy& policy = {}) const {
    const LinearKernel* list[] = {&w8a16, &w8a8, &cpu};
    return octet::resolve(q, {256, 512}, device(DeviceKind::OpenCl), list, schemes(), policy);
  }
};

// The catalogue as it is; resolutions point into it.
const OpenClCatalogue& standard() {
  static const OpenClCatalogue kCatalogue;
  return kCatalogue;
}

std::string chosen(const Resolution& r) {
  return r.kernel() != nullptr ? std::string(r.kernel()->name) : "none";
}

std::string all_reasons(const Resolution& r, std::string_view kernel_name) {
  std::string text;
  for (const LinearAttempt& a : r.attempts) {
    if (a.kernel->name != kernel_name) continue;
    for (const Refusal& refusal : a.refusals) text += refusal.detail + "\n";
  }
  return text;
}

TEST(Resolve, RoutesBlockWeightsToW8A8WhenNoW8A16KernelTakesBlocks) {
  const OpenClCatalogue catalogue;
  const Resolution r = catalogue.resolve(kBlock);
  EXPECT_EQ(chosen(r), "opencl.linear.w8a8.f8");
  EXPECT_EQ(r.problem().scheme, SchemeId::W8A8);
  EXPECT_THAT(all_reasons(r, "opencl.linear.w8a16.f8"),
              HasSubstr("block128x128 not in {tensor, row}"));
}

TEST(Resolve, TakesPerChannelWeightsOnceAKernelDeclaresRow) {
  OpenClCatalogue catalogue;
  catalogue.w8a16.caps.weight_scales = {Granularity::Tensor};
  catalogue.w8a8.caps.weight_scales = {Granularity::Tensor};
  EXPECT_EQ(chosen(catalogue.resolve(kChannel)), "none");
  catalogue.w8a16.caps.weight_scales = {Granularity::Tensor, Granularity::Row};
  EXPECT_EQ(chosen(catalogue.resolve(kChannel)), "opencl.linear.w8a16.f8");
}

TEST(Resolve, KeepsW8A16AsDefaultForPerChannelOnOpenCl) {
  EXPECT_EQ(chosen(standard().resolve(kChannel)), "opencl.linear.w8a16.f8");
}

TEST(Resolve, PrefersW8A8WhenPolicyAsks) {
  EXPECT_EQ(chosen(standard().resolve(kChannel, {.prefer = SchemeId::W8A8})),
            "opencl.linear.w8a8.f8");
}

TEST(Resolve, BlockCapableW8A16WinsByPreferenceWithNoCodeChange) {
  OpenClCatalogue catalogue;
  catalogue.w8a16.caps.weight_scales = {Granularity::Tensor, Granularity::Row, Granularity::Block};
  EXPECT_EQ(chosen(catalogue.resolve(kBlock)), "opencl.linear.w8a16.f8");
}

TEST(Resolve, ForcedKernelThatRefusesIsAnErrorWithItsReasons) {
  const Resolution r = standard().resolve(kBlock, {.forced = "opencl.linear.w8a16.f8"});
  EXPECT_EQ(chosen(r), "none");
  EXPECT_THAT(all_reasons(r, "opencl.linear.w8a16.f8"), HasSubstr("block128x128"));
  EXPECT_THAT(all_reasons(r, "opencl.linear.w8a8.f8"),
              HasSubstr("--kernel asks for opencl.linear.w8a16.f8"));
}

TEST(Resolve, NamesEveryKernelItRefused) {
  const Resolution r = standard().resolve(kBlock);
  std::vector<std::string_view> names;
  for (const LinearAttempt& a : r.attempts) names.push_back(a.kernel->name);
  EXPECT_THAT(names, ElementsAre("opencl.linear.w8a16.f8", "opencl.linear.w8a8.f8",
                                 "cpu.linear.w8a8.f8.ref"));
  EXPECT_THAT(all_reasons(r, "cpu.linear.w8a8.f8.ref"),
              HasSubstr("runs on cpu, the device is opencl"));
}

TEST(Resolve, ReportsAllReasonsNotJustTheFirst) {
  OpenClCatalogue catalogue;
  catalogue.w8a16.caps.k_multiple = 1024;
  catalogue.w8a16.caps.weight_dtypes = {DType::F8E5M2};
  catalogue.w8a16.needs = {Feature::ClDpas16};
  const std::string reasons = all_reasons(catalogue.resolve(kBlock), "opencl.linear.w8a16.f8");
  EXPECT_THAT(reasons, HasSubstr("needs cl_dpas16"));
  EXPECT_THAT(reasons, HasSubstr("weight dtype f8e4m3 not in {f8e5m2}"));
  EXPECT_THAT(reasons, HasSubstr("block128x128 not in"));
  EXPECT_THAT(reasons, HasSubstr("K=512 is not a multiple of 1024"));
}

TEST(Resolve, IgnoresRegistrationOrder) {
  const OpenClCatalogue c;
  std::vector<const LinearKernel*> list{&c.w8a16, &c.w8a8, &c.cpu};
  std::sort(list.begin(), list.end());
  do {
    const Resolution r =
        resolve(kChannel, {256, 512}, device(DeviceKind::OpenCl), list, schemes(), {});
    EXPECT_EQ(chosen(r), "opencl.linear.w8a16.f8");
    EXPECT_EQ(r.attempts.front().kernel, &c.w8a16);
    EXPECT_EQ(r.attempts.back().kernel, &c.cpu);
  } while (std::next_permutation(list.begin(), list.end()));
}

TEST(Resolve, RefusesWhatTheDeviceLacks) {
  const LinearKernel plain = kernel("cpu.linear.w8a16.f8.ref", DeviceKind::Cpu, SchemeId::W8A16, 10,
                                    {Granularity::Tensor, Granularity::Row});
  LinearKernel wide = kernel("cpu.linear.w8a16.f8.avx512bf16", DeviceKind::Cpu, SchemeId::W8A16,
                             240, {Granularity::Tensor, Granularity::Row});
  wide.needs = {Feature::Avx512, Feature::Avx512Bf16};
  const LinearKernel* list[] = {&wide, &plain};
  const DeviceInfo full =
      device(DeviceKind::Cpu, {Feature::Avx2, Feature::Avx512, Feature::Avx512Bf16});
  const DeviceInfo old = device(DeviceKind::Cpu, {Feature::Avx2, Feature::Avx512});
  EXPECT_EQ(chosen(resolve(kChannel, {8, 8}, full, list, schemes(), {})), wide.name);
  const Resolution r = resolve(kChannel, {8, 8}, old, list, schemes(), {});
  EXPECT_EQ(chosen(r), plain.name);
  EXPECT_THAT(all_reasons(r, wide.name), HasSubstr("needs avx512_bf16"));
}

TEST(Resolve, WeightOnlyCheckpointIsRefusedByW8A8WithItsReason) {
  const Resolution r = standard().resolve(kBlockWeightsOnly);
  EXPECT_EQ(chosen(r), "none");
  EXPECT_THAT(all_reasons(r, "opencl.linear.w8a8.f8"), HasSubstr("quantises weights only"));
}

TEST(Resolve, DisabledKernelIsRefusedByName) {
  const Resolution r = standard().resolve(kChannel, {.disabled = {"opencl.linear.w8a16.f8"}});
  EXPECT_EQ(chosen(r), "opencl.linear.w8a8.f8");
  EXPECT_THAT(all_reasons(r, "opencl.linear.w8a16.f8"), HasSubstr("disabled by --disable"));
}

TEST(Resolve, RefinedMatchNeverOutranksAnExactOne) {
  const LinearKernel exact = kernel("cpu.linear.w8a16.f8.ref", DeviceKind::Cpu, SchemeId::W8A16, 10,
                                    {Granularity::Tensor});
  const LinearKernel rows =
      kernel("cpu.linear.w8a16.f8.rows", DeviceKind::Cpu, SchemeId::W8A16, 250, {Granularity::Row});
  const LinearKernel* list[] = {&rows, &exact};
  const LayerQuant tensor = quant(ScaleTile::tensor(), std::nullopt);
  const Resolution r = resolve(tensor, {8, 8}, device(DeviceKind::Cpu), list, schemes(), {});
  EXPECT_EQ(chosen(r), exact.name);
  const LinearKernel* only[] = {&rows};
  const Resolution refined = resolve(tensor, {8, 8}, device(DeviceKind::Cpu), only, schemes(), {});
  EXPECT_EQ(chosen(refined), rows.name);
  EXPECT_TRUE(refined.attempts.front().refined);
  EXPECT_EQ(refined.problem().weight.tile, ScaleTile::row());
}

TEST(Resolve, BlockIsServedAsGroupsWithTheirColumnOffset) {
  const LinearKernel groups = kernel("cpu.linear.w8a16.f8.groups", DeviceKind::Cpu, SchemeId::W8A16,
                                     250, {Granularity::Group});
  const LinearKernel* list[] = {&groups};
  LayerQuant block = kBlockWeightsOnly;
  block.weight.tile.first_row = 64;
  block.weight.tile.first_col = 32;
  const Resolution r = resolve(block, {200, 300}, device(DeviceKind::Cpu), list, schemes(), {});
  ASSERT_TRUE(r.chosen);
  const ScaleTile expected{1, 128, 0, 32};
  EXPECT_EQ(r.problem().weight.tile, expected);
}

TEST(Resolve, Float32CarrierRefusesKernelsThatNeedBf16) {
  LinearKernel bf16 = kernel("cpu.linear.w8a16.f8.avx512bf16", DeviceKind::Cpu, SchemeId::W8A16,
                             240, {Granularity::Row});
  bf16.caps.inputs = {DType::BF16};
  const LinearKernel f32 =
      kernel("cpu.linear.w8a16.f8.avx2", DeviceKind::Cpu, SchemeId::W8A16, 220, {Granularity::Row});
  const LinearKernel* list[] = {&bf16, &f32};
  const DeviceInfo cpu = device(DeviceKind::Cpu);
  const Resolution best = resolve(kChannel, {8, 8}, cpu, list, schemes(), {});
  EXPECT_EQ(chosen(best), bf16.name);
  EXPECT_EQ(best.problem().input, DType::BF16);
  const Resolution exact =
      resolve(kChannel, {8, 8}, cpu, list, schemes(), {.carrier = Carrier::F32});
  EXPECT_EQ(chosen(exact), f32.name);
  EXPECT_THAT(all_reasons(exact, bf16.name), HasSubstr("input f32 not in {bf16}"));
}

TEST(Resolve, SquareWeightKeepsItsOrientation) {
  const OpenClCatalogue c;
  const LinearKernel* list[] = {&c.w8a16};
  const Resolution r =
      resolve(kChannel, {512, 512}, device(DeviceKind::OpenCl), list, schemes(), {});
  ASSERT_TRUE(r.chosen);
  EXPECT_EQ(r.problem().n, 512);
  EXPECT_EQ(r.problem().weight.tile,
            ScaleTile::row());  // a scale per output row, never per input column
}

TEST(Schemes, DeclaredSchemeIsWhatTheCheckpointSays) {
  EXPECT_EQ(declared_scheme(kChannel), SchemeId::W8A8);
  EXPECT_EQ(declared_scheme(kBlockWeightsOnly), SchemeId::W8A16);
  EXPECT_EQ(declared_scheme(LayerQuant{}), SchemeId::Plain);
}

}  // namespace
}  // namespace octet
