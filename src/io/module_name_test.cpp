#include "io/module_name.h"

#include <gtest/gtest.h>

namespace octet {
namespace {

TEST(ModuleName, LastComponentIsTheNameAfterTheLastDot) {
  EXPECT_EQ(last_component("model.layers.1.mlp.down_proj"), "down_proj");
  EXPECT_EQ(last_component("lm_head"), "lm_head");
  EXPECT_EQ(last_component(""), "");
}

TEST(ModuleName, WrappersInFrontAreLeftOut) {
  EXPECT_EQ(without_wrappers("model.layers.1.mlp.up_proj"), "layers.1.mlp.up_proj");
  EXPECT_EQ(without_wrappers("model.language_model.layers.1.mlp.up_proj"), "layers.1.mlp.up_proj");
  EXPECT_EQ(without_wrappers("language_model.model.layers.1.mlp.up_proj"), "layers.1.mlp.up_proj");
  EXPECT_EQ(without_wrappers("model.visual.layers.1"), "visual.layers.1");
}

TEST(ModuleName, OneComponentAloneKeepsItsWrappers) {
  EXPECT_EQ(without_wrappers("language_model.lm_head"), "language_model.lm_head");
  EXPECT_EQ(without_wrappers("model"), "model");
  EXPECT_EQ(without_wrappers("model."), "model.");
}

TEST(ModuleName, PartsKnowTheirFusedName) {
  EXPECT_EQ(fused_name("a.self_attn.k_proj"), "a.self_attn.qkv_proj");
  EXPECT_EQ(fused_name("a.mlp.up_proj"), "a.mlp.gate_up_proj");
  EXPECT_EQ(fused_name("a.mlp.down_proj"), std::nullopt);
  EXPECT_EQ(fused_name("q_proj"), "qkv_proj");
}

}  // namespace
}  // namespace octet
