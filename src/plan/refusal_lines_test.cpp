#include "plan/refusal_lines.h"

#include <gtest/gtest.h>

namespace octet {
namespace {

const Refusal kOldCpu{RefusalCode::Feature, "needs avx2, which the device lacks"};
const Refusal kOtherForm{RefusalCode::Scheme, "weights are fp8"};
const Refusal kDisabled{RefusalCode::Disabled, "disabled by --disable"};

TEST(RefusalLines, SayEveryReasonOnceWithItsKernels) {
  const std::vector<Refusal> one{kOldCpu};
  const std::vector<Refusal> both{kOldCpu, kDisabled};
  const RefusedKernel kernels[] = {{"a", one}, {"b", both}, {"c", one}};
  EXPECT_EQ(refusal_lines(kernels, "  "),
            "  - needs avx2, which the device lacks\n"
            "        a, b, c\n"
            "  - disabled by --disable\n"
            "        b\n");
}

TEST(RefusalLines, PutOtherFormsOfWeightsLast) {
  const std::vector<Refusal> form{kOtherForm};
  const std::vector<Refusal> both{kOtherForm, kDisabled};
  const RefusedKernel kernels[] = {{"a", form}, {"b", both}};
  EXPECT_EQ(refusal_lines(kernels, ""),
            "- disabled by --disable\n"
            "      b\n"
            "- weights are fp8\n"
            "      a, b\n");
}

TEST(RefusalLines, FoldLongListsAndKeepNamesWhole) {
  const std::vector<Refusal> form{kOtherForm};
  const std::string name(40, 'k');
  const RefusedKernel kernels[] = {{name, form}, {name, form}, {name, form}};
  EXPECT_EQ(refusal_lines(kernels, ""),
            "- weights are fp8\n      " + name + ", " + name + ",\n      " + name + "\n");
}

TEST(RefusalLines, AreNothingWithoutARefusal) {
  const RefusedKernel kernels[] = {{"a", {}}};
  EXPECT_EQ(refusal_lines(kernels, ""), "");
}

}  // namespace
}  // namespace octet
