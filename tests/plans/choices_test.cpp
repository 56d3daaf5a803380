// What is chosen for every form of checkpoint on every profile, as tests/plans/choices.txt says;
// and that nothing but a kernel or a reason comes out for any scheme and shape.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/mapped_file.h"
#include "model/prepare.h"
#include "testing/tiny_checkpoint.h"
#include "tests/plans/profiles.h"

namespace octet {
namespace {

struct Form {
  std::string name;
  LayerQuant quant;
};

LayerQuant with_input(LayerQuant quant, ScaleTile tile) {
  quant.input = QuantSpec{DType::F8E4M3, tile, DType::F32, ScaleTiming::Dynamic};
  return quant;
}

std::vector<Form> forms() {
  const LayerQuant tensor = tiny_fp8_weight_only(ScaleTile::tensor());
  const LayerQuant group = tiny_fp8_weight_only(ScaleTile::group(64));
  return {{"tensor-static", tiny_fp8_static()},
          {"tensor-dynamic", with_input(tensor, ScaleTile::row())},
          {"channel-dynamic", tiny_fp8_dynamic()},
          {"channel-weights", tiny_fp8_weight_only()},
          {"block-dynamic", tiny_fp8_block()},
          {"block-weights", tiny_fp8_weight_only(ScaleTile::block(128, 128))},
          {"group-dynamic", with_input(group, ScaleTile::group(64))},
          {"group-weights", group}};
}

Resolution resolved(const LayerQuant& quant, LayerShape shape, const DeviceInfo& device,
                    const LayerPolicy& policy = {}) {
  return resolve(quant, shape, device, kernels<LinearKernel>(), schemes(), policy);
}

TEST(Choices, AreThoseOfTheTable) {
  std::string actual;
  for (const Profile& profile : all_profiles()) {
    for (const Form& form : forms()) {
      const Resolution r = resolved(form.quant, {256, 512}, profile.info);
      actual += fmt::format("{:16} {:16} {:6} {}\n", profile.name, form.name,
                            r.kernel() != nullptr ? name(r.problem().scheme) : "none",
                            r.kernel() != nullptr ? r.kernel()->name : "none");
    }
  }
  // A new kernel that is meant to be chosen changes the table: the failure shows what is chosen
  // now.
  EXPECT_EQ(read_text_file("tests/plans/choices.txt", 1 << 20), actual);
}

TEST(Choices, OnOpenClAreThoseOfTheMissionForEveryFamily) {
  for (const Profile& profile : all_profiles()) {
    if (profile.info.kind != DeviceKind::OpenCl) continue;
    for (const Form& form : forms()) {
      const bool parts = form.name.starts_with("block") || form.name.starts_with("group");
      const SchemeId expected = parts && form.quant.input ? SchemeId::W8A8 : SchemeId::W8A16;
      const Resolution r = resolved(form.quant, {256, 512}, profile.info);
      ASSERT_NE(r.kernel(), nullptr) << profile.name << " " << form.name;
      EXPECT_EQ(r.problem().scheme, expected) << profile.name << " " << form.name;
      // The other scheme is one flag away, but for what the checkpoint does not quantise.
      const SchemeId other = form.quant.input ? SchemeId::W8A8 : SchemeId::W8A16;
      const Resolution preferred =
          resolved(form.quant, {256, 512}, profile.info, {.prefer = SchemeId::W8A8});
      EXPECT_EQ(preferred.problem().scheme, other) << profile.name << " " << form.name;
      EXPECT_EQ(resolved(form.quant, {256, 512}, profile.info, {.prefer = SchemeId::W8A16})
                    .problem()
                    .scheme,
                SchemeId::W8A16);
    }
  }
}

TEST(Choices, ARefinedMatchNeverOutranksAnExactOne) {
  for (const Profile& profile : all_profiles()) {
    for (const Form& form : forms()) {
      const Resolution r = resolved(form.quant, {256, 512}, profile.info);
      if (!r.chosen || !r.attempts[*r.chosen].refined) continue;
      for (const LinearAttempt& attempt : r.attempts)
        EXPECT_FALSE(attempt.refusals.empty() && !attempt.refined)
            << profile.name << " " << form.name << " " << attempt.kernel->name;
    }
  }
}

// Every granularity of weights with every one of inputs.
std::vector<LayerQuant> every_quant() {
  std::vector<LayerQuant> quants{tiny_plain(), tiny_plain(DType::F16), tiny_plain(DType::F32),
                                 tiny_mxfp8()};
  const ScaleTile weights[] = {ScaleTile::tensor(),        ScaleTile::row(),
                               ScaleTile::group(32),       ScaleTile::group(128),
                               ScaleTile::block(128, 128), ScaleTile::block(64, 128),
                               ScaleTile::block(1, 128),   ScaleTile::block(32, 32)};
  for (const ScaleTile& weight : weights) {
    for (const DType dtype : {DType::F8E4M3, DType::F8E5M2}) {
      for (const DType scale : {DType::F32, DType::BF16, DType::F16, DType::F8E8M0}) {
        LayerQuant quant = tiny_fp8_weight_only(weight, scale);
        quant.weight.dtype = dtype;
        quants.push_back(quant);
        for (const ScaleTile& input :
             {ScaleTile::row(), ScaleTile::group(32), ScaleTile::group(128)})
          quants.push_back(with_input(quant, input));
        quant.input =
            QuantSpec{DType::F8E4M3, ScaleTile::tensor(), DType::F32, ScaleTiming::Static};
        quants.push_back(quant);
      }
    }
  }
  return quants;
}

TEST(ChoicesSweep, EverySchemeAndShapeHasAKernelOrAReasonOnEveryProfileAndAKernelOnCpus) {
  const LayerShape shapes[] = {{1, 1},     {16, 16},     {17, 33},      {96, 80},
                               {128, 128}, {151936, 64}, {5000, 11008}, {1, 25600}};
  for (const Profile& profile : all_profiles()) {
    for (const LayerQuant& quant : every_quant()) {
      for (const LayerShape& shape : shapes) {
        const Resolution r = resolved(quant, shape, profile.info);
        for (size_t i = 0; i < r.attempts.size(); ++i) {
          if (r.chosen && i >= *r.chosen) break;
          for (const Refusal& refusal : r.attempts[i].refusals)
            EXPECT_FALSE(refusal.detail.empty());
          EXPECT_FALSE(r.attempts[i].refusals.empty());
        }
        if (profile.info.kind == DeviceKind::Cpu) {
          ASSERT_TRUE(r.chosen) << profile.name << " " << to_string(quant.weight) << " " << shape.n
                                << "x" << shape.k;
        }
        if (profile.info.kind == DeviceKind::Cuda) {
          EXPECT_FALSE(r.chosen);
        }
      }
    }
  }
}

TEST(ChoicesSweep, BothDialectsPlanAlikeOnEveryProfile) {
  struct Case {
    LayerQuant quant;
    bool fp8;
  };
  for (const Case& c : {Case{tiny_fp8_static(DType::F32), true}, Case{tiny_fp8_dynamic(), true},
                        Case{tiny_fp8_block(), true}, Case{tiny_fp8_block(32, 48), true},
                        Case{tiny_fp8_weight_only(), false}, Case{tiny_mxfp8(), false}}) {
    TinyModel model;
    model.hidden = 192;  // no multiple of 128: the last block of every layer is a part of one
    model.intermediate = 288;
    model.quant = c.quant;
    const TinyFolder folder;
    tiny_model(model).write(folder.path() / "ct");
    model.dialect = TinyDialect::Fp8;
    if (c.fp8) tiny_model(model).write(folder.path() / "fp8");
    for (const Profile& profile : all_profiles()) {
      const ModelPlan ct = prepare(folder.path() / "ct", false, profile.info, {}).plan;
      EXPECT_EQ(ct.failures.empty(), profile.info.kind != DeviceKind::Cuda)
          << profile.name << " " << to_string(c.quant.weight);
      if (!c.fp8) continue;
      const ModelPlan fp8 = prepare(folder.path() / "fp8", false, profile.info, {}).plan;
      ASSERT_EQ(ct.layers.size(), fp8.layers.size());
      for (size_t i = 0; i < ct.layers.size(); ++i)
        EXPECT_EQ(ct.layers[i].resolution.kernel(), fp8.layers[i].resolution.kernel());
    }
  }
}

}  // namespace
}  // namespace octet
