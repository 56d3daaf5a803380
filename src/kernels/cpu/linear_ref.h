#pragma once
// The linear layer in plain loops and double sums: what every other kernel is compared with, and
// what runs where no faster kernel does.
#include <cstdint>

#include "num/bf16.h"
#include "num/f8.h"
#include "op/linear.h"

namespace octet::reference {

// One row of a tensor as float values, whatever its element type.
struct F8Row {
  const uint8_t* codes;
  const float* table;
  float operator[](int64_t i) const { return table[codes[i]]; }
};
struct Bf16Row {
  const uint16_t* bits;
  float operator[](int64_t i) const { return bf16_to_f32(bits[i]); }
};
struct F16Row {
  const uint16_t* bits;
  float operator[](int64_t i) const { return f16_to_f32(bits[i]); }
};
struct F32Row {
  const float* values;
  float operator[](int64_t i) const { return values[i]; }
};

// y = x W^T (+ bias) for any problem that the reference records declare. Thread: rows of W are
// shared out over the stream's pool.
void run_linear(const LinearArgs& args, Stream& stream) noexcept;

}  // namespace octet::reference
