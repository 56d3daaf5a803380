#include "op/expected.h"

#include <gtest/gtest.h>

#include <cmath>

namespace octet {
namespace {

TEST(Expected, RoundsToOneValueWhereNoEdgeIsNear) {
  const Expected e = rounded({1.0 + 0x1p-12, 0x1p-20}, DType::BF16);
  EXPECT_EQ(e.value, 1);
  EXPECT_EQ(e.bound, 0);
}

TEST(Expected, AdmitsBothNeighboursOfATie) {
  const Expected e = rounded({1 + 0x1p-8, 0x1p-20}, DType::BF16);
  EXPECT_EQ(e.value - e.bound, 1);
  EXPECT_EQ(e.value + e.bound, 1 + 0x1p-7);
}

TEST(Expected, AProductAddsItsOwnRounding) {
  const Expected e = times({2, 0x1p-20}, -3);
  EXPECT_EQ(e.value, -6);
  EXPECT_GT(e.bound, 3 * 0x1p-20 + 6 * 0x1p-24);
  EXPECT_LT(e.bound, 3 * 0x1p-20 + 6.1 * 0x1p-24);
}

TEST(Expected, AProductThatFloat32HoldsIsExact) {
  EXPECT_EQ(times({1.5, 0}, -1.25).bound, 0);
  EXPECT_GT(times({double{0.1F}, 0}, double{0.3F}).bound, 0);
}

TEST(Expected, StoresWhatTheCacheTypesKeep) {
  EXPECT_EQ(as_stored(DType::F32, 0.1), double{0.1F});
  EXPECT_EQ(as_stored(DType::BF16, 1.003), 1);
  EXPECT_EQ(as_stored(DType::F16, 1.0006), 1 + 0x1p-10);
  EXPECT_EQ(as_stored(DType::F8E4M3, 1e6), 448);
  EXPECT_EQ(as_stored(DType::F8E5M2, -1e6), -57344);
  EXPECT_TRUE(std::isnan(as_stored(DType::F8E4M3, std::nan(""))));
}

}  // namespace
}  // namespace octet
