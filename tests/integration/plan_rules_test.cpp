// Rules of plans that need real checkpoints and real kernels.
#include <gmock/gmock.h>

#include <cmath>

#include "base/error.h"
#include "tests/integration/rig.h"
#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Prepared prepared(const std::filesystem::path& path, PlanOptions options = {}) {
  return prepare(path, false, here(), std::move(options));
}

PlanOptions preferring(SchemeId scheme) {
  PlanOptions options;
  options.policy.prefer = scheme;
  return options;
}

TEST(Plan, ScaleTensorNamesReachNoKernel) {
  // The same blocks, once as compressed-tensors names their scales (weight_scale) and once as the
  // fp8 method does (weight_scale_inv).
  const TinyFolder folder;
  TinyModel model;
  model.quant = tiny_fp8_block(128, 128, DType::F32);
  tiny_model(model).write(folder.path() / "ct");
  model.dialect = TinyDialect::Fp8;
  tiny_model(model).write(folder.path() / "fp8");
  const Prepared ct = prepared(folder.path() / "ct");
  const Prepared fp8 = prepared(folder.path() / "fp8");
  ASSERT_NE(ct.checkpoint.find("model.layers.0.mlp.up_proj.weight_scale"), nullptr);
  ASSERT_NE(fp8.checkpoint.find("model.layers.0.mlp.up_proj.weight_scale_inv"), nullptr);
  ASSERT_EQ(ct.records.size(), fp8.records.size());
  for (size_t i = 0; i < ct.records.size(); ++i) {
    const LinearRecord& a = ct.records[i];
    const LinearRecord& b = fp8.records[i];
    EXPECT_EQ(a.module, b.module);
    EXPECT_EQ(a.quant, b.quant) << a.module;
    EXPECT_EQ(a.view.spec, b.view.spec);
    EXPECT_EQ(a.view.codes.shape, b.view.codes.shape);
    EXPECT_EQ(a.view.scales.shape, b.view.scales.shape);
    for (int64_t e = 0; e < a.view.scales.shape.elements() && a.view.scales.data; ++e)
      ASSERT_EQ(element(a.view.scales, e), element(b.view.scales, e)) << a.module;
  }
  ASSERT_EQ(ct.plan.layers.size(), fp8.plan.layers.size());
  for (size_t i = 0; i < ct.plan.layers.size(); ++i) {
    EXPECT_EQ(ct.plan.layers[i].resolution.kernel(), fp8.plan.layers[i].resolution.kernel());
    EXPECT_EQ(ct.plan.layers[i].resolution.problem(), fp8.plan.layers[i].resolution.problem());
  }
}

TEST(Plan, StaticInputScaleIsConsumedAndNamedUnusedUnderW8A16) {
  const TinyFolder folder;
  TinyModel model;
  model.quant = tiny_fp8_static();
  tiny_model(model).write(folder.path());
  const auto unused = Contains(HasSubstr("static input scales are not used"));
  const Prepared declared = prepared(folder.path());
  EXPECT_THAT(declared.plan.notes, Not(unused));
  const Prepared w8a16 = prepared(folder.path(), preferring(SchemeId::W8A16));
  EXPECT_TRUE(w8a16.plan.failures.empty());
  EXPECT_EQ(w8a16.plan.layers[0].resolution.problem().scheme, SchemeId::W8A16);
  EXPECT_THAT(w8a16.plan.notes, unused);
  const LinearRecord& record = w8a16.records[0];
  EXPECT_TRUE(record.view.has_input_scale);
  EXPECT_THAT(record.tensors, Contains(HasSubstr("input_scale")));
}

TEST(Plan, SquareWeightKeepsItsOrientation) {
  // q_proj is [256, 256]: its rows are its outputs, and row scales lie along them.
  const TinyFolder folder;
  TinyModel model;
  model.quant = tiny_fp8_dynamic();
  TinyCheckpoint checkpoint = tiny_model(model);
  const std::vector<double> values = checkpoint.values("model.layers.0.self_attn.q_proj.weight");
  checkpoint.write(folder.path());
  const auto device = make_cpu_device(here(), 1);
  const auto self = make_self_communicator();
  PlanOptions options = exact_options();
  options.policy.prefer = SchemeId::W8A16;
  const Rig rig(folder.path(), *device, *self, std::move(options));
  const Linear& q = rig.model->layers[0].q;
  ASSERT_EQ(q.weight.problem.n, 256);
  ASSERT_EQ(q.weight.problem.k, 256);
  std::vector<float> x(256, 0.0F), y(256);
  x[3] = 1;  // picks column 3
  const auto stream = device->make_stream();
  std::vector<std::byte> scratch(
      q.kernel->scratch_bytes ? q.kernel->scratch_bytes(q.weight.problem, 1, 1) + 64 : 64);
  auto* aligned =
      reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
  launch(*q.kernel, LinearArgs{&q.weight, 1, {x.data(), 256, nullptr}, y.data(), 256, aligned},
         *stream);
  for (size_t n = 0; n < y.size(); ++n)
    EXPECT_NEAR(y[n], values[n * 256 + 3], 1e-6 * std::abs(values[n * 256 + 3])) << "row " << n;
}

TEST(Plan, BytesAddUp) {
  const TinyFolder folder;
  TinyModel model;
  model.quant = tiny_fp8_dynamic();
  tiny_model(model).write(folder.path());
  PlanOptions options;
  options.max_model_len = 100;
  const Budget one = prepared(folder.path(), options).plan.budget;
  const uint64_t linear = 2 * (2 * 256 * 256 + 2 * 128 * 256 + 3 * 384 * 256);  // one byte each
  const uint64_t table = 512 * 256 * 2;  // the embedding, and the head
  const uint64_t norms = 5 * 256 * 2;
  EXPECT_EQ(one.weights, linear + 2 * table + norms + one.copied);
  EXPECT_GE(one.copied, 2U * (2 * 256 + 2 * 128 + 2 * 384 + 256) * sizeof(float));  // row scales
  EXPECT_EQ(one.kv_per_token, 2U * 2 * 2 * 64 * 2);
  EXPECT_EQ(one.kv(), 100 * one.kv_per_token);
  // The longest context that fits: with its own scratch, and one more does not.
  options.max_model_len = one.fits_tokens;
  DeviceInfo same = here();
  same.memory_bytes = one.device;
  const ModelPlan longest = prepare(folder.path(), false, same, options).plan;
  EXPECT_TRUE(longest.failures.empty());
  EXPECT_LE(longest.budget.weights + longest.budget.scratch + longest.budget.kv(), one.device);
  options.max_model_len = one.fits_tokens + 1;
  const ModelPlan longer = prepare(folder.path(), false, same, options).plan;
  EXPECT_FALSE(longer.failures.empty());
  EXPECT_GT(longer.budget.weights + longer.budget.scratch + longer.budget.kv(), one.device);
  options.max_model_len = 100;

  options.ranks = 2;
  const Budget two = prepared(folder.path(), options).plan.budget;
  EXPECT_EQ(two.weights - two.copied, linear / 2 + table + norms);
  EXPECT_EQ(two.kv_per_token * 2, one.kv_per_token);
}

TEST(Plan, ATiedHeadIsCountedOnce) {
  const TinyFolder folder;
  TinyModel model;
  model.tied = true;
  tiny_model(model).write(folder.path() / "tied");
  model.tied = false;
  tiny_model(model).write(folder.path() / "untied");
  const Budget tied = prepared(folder.path() / "tied").plan.budget;
  const Budget untied = prepared(folder.path() / "untied").plan.budget;
  EXPECT_EQ(untied.weights - tied.weights, 512U * 256U * 2U);
}

TEST(Plan, WhatDoesNotRunIsNotLoaded) {
  DeviceInfo small = here();
  small.memory_bytes = 1000;
  const TinyFolder folder;
  tiny_model({}).write(folder.path());
  const Prepared refused = prepare(folder.path(), false, small, {});
  EXPECT_THAT(refused.plan.failures, Contains(HasSubstr("does not fit")));
  EXPECT_THROW(require_runnable(refused.plan), Error);
}

}  // namespace
}  // namespace octet
