// Quarantine of kernels that have no scheme.
#include <gmock/gmock.h>

#include "op/problem_text.h"
#include "op/sample.h"
#include "plan/quarantine.h"

namespace octet {
namespace {

DeviceInfo device() {
  DeviceInfo info;
  info.name = "a chip";
  return info;
}

template <class Op>
QuarantineEntry key_of(const typename Op::Problem& problem) {
  return quarantine_key("cpu.op.x", problem_text(problem), device());
}

TEST(QuarantineOfOps, AnEntryIsForOneProblem) {
  QuarantineEntry entry = key_of<RmsNorm>({576});
  entry.reason = "error 12 times its bound";
  const Quarantine quarantine{"bad.json", {entry}};
  ASSERT_TRUE(quarantine.refusal(key_of<RmsNorm>({576})));
  EXPECT_EQ(quarantine.refusal(key_of<RmsNorm>({576}))->detail,
            "quarantined: error 12 times its bound, bad.json");
  EXPECT_FALSE(quarantine.refusal(key_of<RmsNorm>({64})));
}

TEST(QuarantineOfOps, EveryProblemIsReadBackAsItWas) {
  Quarantine quarantine{"bad.json", {}};
  const std::pair<QuarantineEntry, std::string_view> entries[] = {
      {key_of<Attention>({9, 3, 64, DType::BF16, 0, 0}), "heads 9/3x64, KV bf16"},
      {key_of<RmsNorm>({576}), "width 576"},
      {key_of<Rope>({64, 32, DType::F32, false}), "head_dim 64, rotary_dim 32, KV f32"},
      {key_of<Rope>({64, 32, DType::F32, true}), "head_dim 64, rotary_dim 32, KV f32, interleaved"},
      {key_of<Gather>({DType::F16}), "table f16"},
      {key_of<Quantize>({QuantSpec{DType::BF16}, 576}), "bf16"},
      {key_of<Sample>({}), "any"},
  };
  for (const auto& [entry, words] : entries) {
    EXPECT_EQ(entry.input, words);
    quarantine.put(entry);
  }
  const Quarantine back = parse_quarantine(to_json(quarantine), "bad.json");
  ASSERT_EQ(back.entries.size(), std::size(entries));
  for (const auto& [entry, words] : entries) EXPECT_TRUE(back.refusal(entry)) << words;
}

}  // namespace
}  // namespace octet
