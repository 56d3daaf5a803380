#include "io/name_pattern.h"

#include "testing/broken_files.h"

namespace octet {
namespace {

using testing::HasSubstr;

bool matches(std::string_view expression, std::string_view name) {
  return NamePattern(expression, "ignore[0]").matches(name);
}

TEST(NamePattern, IsAnchoredAtTheStartOnly) {
  EXPECT_TRUE(matches(R"(model\.layers\.1)", "model.layers.10.mlp.up_proj"));  // A18
  EXPECT_FALSE(matches("lm_head", "language_model.lm_head"));                  // A17
  EXPECT_TRUE(matches(".*lm_head", "language_model.lm_head"));
}

TEST(NamePattern, EveryAlternativeIsAnchored) {
  EXPECT_FALSE(matches("x|mlp", "model.mlp"));
  EXPECT_TRUE(matches("x|model", "model.mlp"));
}

TEST(NamePattern, TakesTheConstructsThatConfigsUse) {
  EXPECT_TRUE(matches(R"(.*mlp\.experts\.\d+\.(gate|up|down)_proj$)",
                      "model.layers.3.mlp.experts.17.up_proj"));
  EXPECT_FALSE(matches(R"(.*mlp\.experts\.\d+\.(gate|up|down)_proj$)", "a.mlp.gate_proj"));
  EXPECT_TRUE(matches(R"((?!.*lm_head).*proj)", "model.q_proj"));
  EXPECT_FALSE(matches(R"((?!.*lm_head).*proj)", "lm_head.proj"));
  EXPECT_TRUE(matches(R"(model\.layers\.(?P<n>[0-9]|1[0-5])\..*)", "model.layers.12.mlp"));
  EXPECT_TRUE(matches("(?i)MODEL", "model"));
  EXPECT_TRUE(matches("", "anything"));
}

TEST(NamePattern, BrokenExpressionsAreRefusedWithPlaceAndReason) {
  EXPECT_THAT(bad_input([] { NamePattern("a(b", "ignore[3]"); }),
              AllOf(HasSubstr("ignore[3]"), HasSubstr("\"a(b\" at character 3"),
                    HasSubstr("missing closing parenthesis")));
  bad_input([] { NamePattern(std::string(100'000, 'a'), "x"); });
  bad_input([] { NamePattern(std::string(10'000, '('), "x"); });
  bad_input([] { NamePattern("((a{1000}){1000}){1000}", "x"); });
  bad_input([] { NamePattern("\xff", "x"); });
}

TEST(NamePattern, AHostileExpressionStopsAtALimit) {
  EXPECT_THAT(bad_input([] { matches("(a+)+$", std::string(60, 'a') + "b"); }),
              AllOf(HasSubstr("(a+)+$"), HasSubstr("limit")));
}

}  // namespace
}  // namespace octet
