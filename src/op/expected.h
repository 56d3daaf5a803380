#pragma once
// What a float32 kernel of an operation has to give: the exact value, and how far from it a right
// kernel may be.
#include <cstddef>

#include "num/dtype.h"

namespace octet {

struct Expected {
  double value = 0;
  double bound = 0;  // 0: to the bit
};

// `e` after rounding to `dtype`: rounding is monotone, so a result lies between the rounded ends.
Expected rounded(Expected e, DType dtype);

// `e` times a factor that is exact, rounded to float32 unless the product is one.
Expected times(Expected e, double factor);

// Writes `value` as one element of `dtype`: rounded to nearest even, saturated for 8-bit floats.
// Requires a float type.
void store_value(std::byte* dst, DType dtype, float value);

// `value` as float32 and then as `dtype` keeps it.
double as_stored(DType dtype, double value);

}  // namespace octet
