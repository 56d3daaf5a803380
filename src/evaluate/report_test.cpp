#include "evaluate/report.h"

#include <gmock/gmock.h>

namespace octet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Scrub, TheHomeFolderBecomesATilde) {
  EXPECT_EQ(scrub("/data/ann/models/x", "/data/ann"), "~/models/x");
  EXPECT_EQ(scrub("cannot read /data/ann: denied", "/data/ann"), "cannot read ~: denied");
}

TEST(Scrub, AFolderThatOnlyBeginsLikeItStays) {
  EXPECT_EQ(scrub("/data/anna/models", "/data/ann"), "/data/anna/models");
  EXPECT_EQ(scrub("/models", "/"), "/models");
  EXPECT_EQ(scrub("/models", ""), "/models");
}

TEST(Scrub, FoldersOfOtherUsersBecomeATilde) {
  EXPECT_EQ(scrub("/home/bob/x and /Users/eve/y and /root/z", "/data/ann"), "~/x and ~/y and ~/z");
  EXPECT_EQ(scrub("/home/bob", ""), "~");
  EXPECT_EQ(scrub("/home/", ""), "/home/");
  EXPECT_EQ(scrub("/rooted", ""), "/rooted");
}

TEST(Scrub, AccessTokensAreRemovedAndNamesAreNot) {
  EXPECT_EQ(scrub("key hf_abcdefghijklmnopqrstuvwx.", ""), "key (removed).");
  EXPECT_EQ(scrub("sk-proj-0123456789abcdef0123", ""), "(removed)");
  EXPECT_EQ(scrub("hf_hub and self_attn.hf_x", ""), "hf_hub and self_attn.hf_x");
  EXPECT_EQ(scrub("model.layers.0.self_attn.q_proj", ""), "model.layers.0.self_attn.q_proj");
}

Report sample() {
  Report report;
  report.octet = "0.1.0";
  report.model = "m";
  report.facts = {{"os", "Linux"}};
  report.variables = {{"HF_HOME", "/home/bob/hf"}};
  report.plan = {{"linear", {{{"kernel", "cpu.linear.x"}}, {{"kernel", "cpu.linear.x"}}}}};
  report.verify = {{"passed", false},
                   {"linear", {{{"kernel", "cpu.linear.x"}, {"failure", "y[0, 1]"}}}},
                   {"operations", {{{"kernel", "cpu.norm.x"}, {"failure", "out [0, 1]"}}}},
                   {"damaged", {{{"tensor", "a.weight"}}}}};
  report.problems = {"/home/bob/m: broken"};
  return report;
}

TEST(ReportText, TheHeadSaysWhatAPersonNeeds) {
  const std::string text = report_text(sample(), "");
  const std::string head = text.substr(0, text.find("one JSON object"));
  EXPECT_THAT(head, HasSubstr("kernels      cpu.linear.x\n"));
  EXPECT_THAT(head, HasSubstr("FAILED; cpu.linear.x wrong; cpu.norm.x wrong; a.weight damaged"));
  EXPECT_THAT(head, HasSubstr("problem      ~/m: broken"));
  EXPECT_THAT(text, Not(HasSubstr("bob")));
}

TEST(ReportText, TheRestIsOneJsonObject) {
  const std::string text = report_text(sample(), "");
  const auto json = nlohmann::json::parse(text.substr(text.find("\n{") + 1));
  EXPECT_EQ(json["environment"]["variables"]["HF_HOME"], "~/hf");
  EXPECT_EQ(json["problems"][0], "~/m: broken");
  EXPECT_EQ(json["plan"]["linear"].size(), 2U);
}

TEST(ReportText, WhatWasNotRunIsSaid) {
  Report report = sample();
  report.plan = nullptr;
  report.verify = nullptr;
  EXPECT_THAT(report_text(report, ""), HasSubstr("verify       not run"));
}

TEST(ReportText, BytesThatAreNotUtf8DoNotBreakIt) {
  Report report = sample();
  report.model = "a\xFF\x1b[2K";
  const std::string text = report_text(report, "");
  EXPECT_THAT(text.substr(0, text.find("{")), Not(HasSubstr("\x1b")));
  EXPECT_TRUE(nlohmann::json::accept(text.substr(text.find("\n{") + 1)));
}

}  // namespace
}  // namespace octet
