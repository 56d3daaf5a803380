#include "plan/quarantine.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/error.h"
#include "plan/resolve.h"

namespace octet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

LinearKernel kernel(std::string_view name, int preference) {
  LinearKernel k{};
  k.name = name;
  k.device = DeviceKind::Cpu;
  k.scheme = SchemeId::W8A16;
  k.preference = preference;
  k.caps.weight_dtypes = {DType::F8E4M3};
  k.caps.weight_scales = {Granularity::Row};
  return k;
}

DeviceInfo device(std::string_view name = "a chip") {
  DeviceInfo info;
  info.name = name;
  return info;
}

LayerQuant row_scales() {
  LayerQuant quant;
  quant.weight = {DType::F8E4M3, ScaleTile::row(), DType::BF16, ScaleTiming::Static};
  return quant;
}

const LinearKernel kFast = kernel("cpu.linear.w8a16.f8.fast", 300);
const LinearKernel kSlow = kernel("cpu.linear.w8a16.f8.slow", 100);

Resolution resolved(const Quarantine& quarantine, LayerShape shape = {64, 32},
                    const DeviceInfo& info = device()) {
  const LinearKernel* list[] = {&kFast, &kSlow};
  return resolve(row_scales(), shape, info, list, schemes(), {.quarantine = &quarantine});
}

Quarantine of_fast() {
  const Resolution before = resolved({});
  QuarantineEntry entry = quarantine_key(kFast, before.problem(), device());
  entry.reason = "error 3.2e+04 times its bound";
  entry.octet = "0.1.0";
  return {"bad.json", {entry}};
}

TEST(Quarantine, AKernelIsRefusedForTheProblemItFailedOnWithReasonAndFile) {
  const Quarantine quarantine = of_fast();
  EXPECT_EQ(resolved({}).kernel()->name, kFast.name);
  const Resolution r = resolved(quarantine);
  ASSERT_NE(r.kernel(), nullptr);
  EXPECT_EQ(r.kernel()->name, kSlow.name);
  ASSERT_EQ(r.attempts.front().refusals.size(), 1U);
  EXPECT_EQ(r.attempts.front().refusals.front().detail,
            "quarantined: error 3.2e+04 times its bound, bad.json");
}

TEST(Quarantine, OtherProblemsAndOtherChipsKeepTheKernel) {
  const Quarantine quarantine = of_fast();
  EXPECT_EQ(resolved(quarantine, {64, 48}).kernel()->name, kFast.name);
  EXPECT_EQ(resolved(quarantine, {48, 32}).kernel()->name, kFast.name);
  EXPECT_EQ(resolved(quarantine, {64, 32}, device("another")).kernel()->name, kFast.name);
}

TEST(Quarantine, TheTextIsReadBackAsItWas) {
  Quarantine quarantine = of_fast();
  QuarantineEntry entry = quarantine_key("cpu.quantize.x", "bf16", device());
  entry.reason = "code 3 of row 1 differs";
  entry.octet = "0.1.0";
  quarantine.put(entry);
  const Quarantine back = parse_quarantine(to_json(quarantine), "bad.json");
  ASSERT_EQ(back.entries.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(same_subject(back.entries[i], quarantine.entries[i])) << i;
    EXPECT_EQ(back.entries[i].reason, quarantine.entries[i].reason);
    EXPECT_EQ(back.entries[i].octet, quarantine.entries[i].octet);
  }
}

TEST(Quarantine, TheSameSubjectIsKeptOnceWithItsLastReason) {
  Quarantine quarantine = of_fast();
  QuarantineEntry again = quarantine.entries.front();
  again.reason = "another";
  quarantine.put(again);
  ASSERT_EQ(quarantine.entries.size(), 1U);
  EXPECT_EQ(quarantine.entries.front().reason, "another");
}

TEST(Quarantine, KernelsThatThisProgramDoesNotHaveAreNoted) {
  Quarantine quarantine = of_fast();
  const std::string_view known[] = {kFast.name, kSlow.name};
  EXPECT_EQ(unknown_kernels_note({}, known), std::nullopt);
  EXPECT_EQ(unknown_kernels_note(quarantine, known), std::nullopt);
  const std::string_view other[] = {kSlow.name};
  EXPECT_THAT(unknown_kernels_note(quarantine, other).value_or(""),
              AllOf(HasSubstr("bad.json"), HasSubstr("\"cpu.linear.w8a16.f8.fast\""),
                    HasSubstr("no effect")));
  for (int i = 0; i < 9; ++i) {
    QuarantineEntry entry = quarantine.entries.front();
    entry.kernel = fmt::format("cpu.\x1b.{}", i);
    quarantine.put(entry);
  }
  EXPECT_THAT(unknown_kernels_note(quarantine, known).value_or(""),
              AllOf(HasSubstr("\\x1b.4\" and 4 more"), Not(HasSubstr("\x1b"))));
}

void expect_refused(std::string_view text, std::string_view place) {
  try {
    parse_quarantine(text, "list.json");
    ADD_FAILURE() << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::BadInput);
    EXPECT_THAT(error.message(), AllOf(HasSubstr("list.json"), HasSubstr(std::string(place))))
        << text;
    EXPECT_THAT(error.hint(), HasSubstr("octet verify"));
  }
}

TEST(Quarantine, TextsOfAnotherFormAreRefusedWithFileAndPlace) {
  expect_refused("", "not JSON");
  expect_refused("[]", "list.json: the top level is [], expected an object");
  expect_refused("{}", "list.json: the top level has no \"octet_quarantine\"");
  expect_refused(R"({"octet_quarantine": 2, "entries": []})", "octet_quarantine is 2");
  expect_refused(R"({"octet_quarantine": 1})", "entries");
  expect_refused(R"({"octet_quarantine": 1, "entries": [3]})", "entries[0]");
  expect_refused(R"({"octet_quarantine": 1, "entries": [{"device": "cpu"}]})", "problem");
  expect_refused(R"({"octet_quarantine": 1, "entries": [{"device": 1, "problem": {}}]})", "device");
  expect_refused(std::string(40, '[') + std::string(40, ']'), "deep");
}

}  // namespace
}  // namespace octet
