#pragma once
// How many rows of an element-wise operation are one chunk of work.
#include <algorithm>
#include <cstdint>

namespace octet::cpu {

// Rows of `width` elements that make a chunk worth handing to a thread: about 16 Ki elements, some
// 5 us, twice what waking the team costs.
constexpr int64_t rows_per_chunk(int64_t width) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(width, 1));
}

}  // namespace octet::cpu
