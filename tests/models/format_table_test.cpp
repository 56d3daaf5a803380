// Every cell of the table in docs/FORMATS.md: a quantised layer is computed as its checkpoint says,
// at every instruction set, or not at all.
#include "plan/format_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "op/quantize.h"

namespace octet {
namespace {

using ::testing::HasSubstr;

std::string place(const FormatRow& row, size_t level) {
  return row.weight + " x " + row.input + " at " + std::string(format_levels()[level].isa);
}

TEST(FormatTable, HasEveryWeightScaleWithEveryInput) {
  // 4 weight scales x 6 inputs, MXFP8 with and without its inputs, 3 unquantised dtypes.
  EXPECT_EQ(format_rows().size(), 4U * 6U + 2U + 3U);
  EXPECT_EQ(format_levels().size(), 3U);
}

TEST(FormatTable, EveryCellHasTheDeclaredSchemeAndNothingReplaced) {
  for (const FormatRow& row : format_rows()) {
    for (size_t level = 0; level < row.choices.size(); ++level) {
      SCOPED_TRACE(place(row, level));
      const Resolution& choice = row.choices[level];
      ASSERT_TRUE(choice.chosen.has_value());
      const LinearProblem& problem = choice.problem();
      EXPECT_EQ(problem.scheme, declared_scheme(row.quant));
      EXPECT_EQ(problem.activation, row.quant.input);
      EXPECT_EQ(problem.weight.dtype, row.quant.weight.dtype);
      EXPECT_EQ(problem.weight.scale_dtype, row.quant.weight.scale_dtype);
      EXPECT_TRUE(refines(row.quant.weight.tile, problem.weight.tile));
    }
  }
}

TEST(FormatTable, EveryInputHasAKernelThatMakesIt) {
  for (const FormatRow& row : format_rows()) {
    for (size_t level = 0; level < row.choices.size(); ++level) {
      SCOPED_TRACE(place(row, level));
      ASSERT_TRUE(row.choices[level].chosen.has_value());
      const LinearProblem& problem = row.choices[level].problem();
      if (!problem.activation && problem.input == DType::F32) continue;
      const QuantSpec spec = problem.activation.value_or(QuantSpec{problem.input});
      const auto selection = select<Quantize>(kernels<Kernel<Quantize>>(), {spec, kFormatShape.k},
                                              format_levels()[level].device);
      EXPECT_NE(selection.kernel(), nullptr) << to_string(spec);
    }
  }
}

TEST(FormatTable, UsesTheInstructionsOfItsColumn) {
  const std::vector<FormatRow> rows = format_rows();
  EXPECT_EQ(rows.front().choices[0].kernel()->needs, Features{});
  EXPECT_TRUE(rows.front().choices[1].kernel()->needs.has(Feature::Avx2));
  EXPECT_TRUE(rows.front().choices[2].kernel()->needs.has(Feature::Avx512));
}

TEST(FormatTable, IsMarkdownWithOneLinePerRow) {
  const std::string table = format_table_markdown();
  EXPECT_EQ(static_cast<size_t>(std::count(table.begin(), table.end(), '\n')),
            format_rows().size() + 2);
  EXPECT_THAT(table, HasSubstr("| block of 128 x 128 | dynamic group of 100 | w8a8 |"));
}

}  // namespace
}  // namespace octet
