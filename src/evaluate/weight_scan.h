#pragma once
// Reading every value of a checkpoint once, for what no header tells.
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "io/checkpoint.h"

namespace octet {

// How often each of the 256 codes occurs.
using CodeCounts = std::array<int64_t, 256>;
CodeCounts count_codes(std::span<const std::byte> codes, ThreadPool& pool);

// Values of a tensor that are no good.
struct BadValues {
  int64_t count = 0;
  int64_t first = 0;  // index of the first in row-major order; meaningless without one
};
// Values that are NaN or infinite. Any float dtype, E8M0 (whose code 255 is NaN) included; of
// others there are none. The bytes need no alignment.
BadValues find_not_finite(std::span<const std::byte> bytes, DType dtype, ThreadPool& pool);

// The largest weight or scale that is taken for one. Those of trained models are far below, and up
// to here float32 holds each product and sum of a layer: an input of 448 * 2^40 times a weight of
// 448 * 2^40, 2^17 of them, is 2^115.
inline constexpr double kLargestPlausible = 0x1p40;
// Finite values of a magnitude above kLargestPlausible. Of dtypes that have none there are none.
BadValues find_too_large(std::span<const std::byte> bytes, DType dtype, ThreadPool& pool);

// The dtype by which the values of a tensor count: scales stored as U8 are E8M0.
DType value_dtype(std::string_view name, DType stored);

// Values of a plain tensor (F32, BF16) that are not zero, and those of them below 2^-126. Others
// cannot hold such numbers and have none.
struct SubnormalCounts {
  int64_t nonzero = 0, subnormal = 0;
};
SubnormalCounts count_subnormals(std::span<const std::byte> bytes, DType dtype, ThreadPool& pool);

// "[3, 17]": an element of a tensor by its row-major index.
std::string element_place(const Shape& shape, int64_t index);

// A tensor with values that are not finite, or that are above kLargestPlausible.
struct DamagedTensor {
  std::string_view name;  // lives as long as the checkpoint
  DType dtype = DType::F32;
  Shape shape;
  BadValues values;
  std::optional<double> too_large;  // the first value, where that is the damage
};

// Every such tensor, in the order of the files. `progress` gets the number of bytes read so far,
// of Checkpoint::file_bytes(), after each tensor; what it throws ends the scan.
std::vector<DamagedTensor> damaged_tensors(const Checkpoint& checkpoint, ThreadPool& pool,
                                           const std::function<void(uint64_t)>& progress);

}  // namespace octet
