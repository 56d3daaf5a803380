#include "kernels/cpu/f8_avx512.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "num/bf16.h"
#include "num/f8.h"

namespace octet::avx512 {
namespace {

TEST(F8Avx512, TablesHoldTheBfloat16OfEveryCode) {
  for (DType dtype : {DType::F8E4M3, DType::F8E5M2}) {
    const F8Tables& tables = f8_tables(dtype);
    for (size_t code = 0; code < 128; ++code) {
      const auto bits = static_cast<uint16_t>(tables.high[code] << 8 | tables.low[code]);
      const float value = bf16_to_f32(bits), exact = f8_table(dtype)[code];
      if (std::isnan(exact)) {
        EXPECT_TRUE(std::isnan(value)) << name(dtype) << " code " << code;
      } else {
        EXPECT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(exact))
            << name(dtype) << " code " << code;
      }
      // The other half of the codes differs in the sign alone.
      const float negative = f8_table(dtype)[code + 128];
      EXPECT_TRUE(negative == -exact || (std::isnan(negative) && std::isnan(exact)));
    }
  }
}

}  // namespace
}  // namespace octet::avx512
