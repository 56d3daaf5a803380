#include "evaluate/weight_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>

#include "num/f8.h"

namespace octet {
namespace {

constexpr int64_t kGrain = 1 << 20;  // bytes that a thread takes at a time

// Values whose bits under `mask` are all ones: an exponent of ones is NaN or infinity in IEEE
// types.
template <class Word>
int64_t count_masked(const std::byte* bytes, int64_t count, Word mask) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, bytes + i * static_cast<int64_t>(sizeof word), sizeof word);
    found += (word & mask) == mask;
  }
  return found;
}

// True for each code of an 8-bit type that is NaN or infinite.
std::array<bool, 256> bad_codes(DType dtype) {
  std::array<bool, 256> bad{};
  if (dtype == DType::F8E8M0) {
    bad[255] = true;
  } else {
    for (size_t code = 0; code < 256; ++code) bad[code] = !std::isfinite(f8_table(dtype)[code]);
  }
  return bad;
}

// IEEE values by exponent and mantissa: `exponent` and `mantissa` are the masks of the two.
template <class Word>
SubnormalCounts subnormals(const std::byte* bytes, int64_t count, Word exponent, Word mantissa) {
  SubnormalCounts out;
  for (int64_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, bytes + i * static_cast<int64_t>(sizeof word), sizeof word);
    out.nonzero += (word & (exponent | mantissa)) != 0;
    out.subnormal += (word & exponent) == 0 && (word & mantissa) != 0;
  }
  return out;
}

int64_t count_not_finite(const std::byte* bytes, int64_t count, DType dtype) {
  switch (dtype) {
    case DType::F32:
      return count_masked<uint32_t>(bytes, count, 0x7F800000U);
    case DType::F16:
      return count_masked<uint16_t>(bytes, count, 0x7C00U);
    case DType::BF16:
      return count_masked<uint16_t>(bytes, count, 0x7F80U);
    default: {
      const std::array<bool, 256> bad = bad_codes(dtype);
      return std::count_if(bytes, bytes + count,
                           [&](std::byte b) { return bad[std::to_integer<size_t>(b)]; });
    }
  }
}

// IEEE values whose exponent is above that of kLargestPlausible and not all ones.
template <class Word>
int64_t count_above(const std::byte* bytes, int64_t count, Word exponent, Word largest) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, bytes + i * static_cast<int64_t>(sizeof word), sizeof word);
    const auto magnitude = static_cast<Word>(word & (exponent | (exponent - 1)));
    found += magnitude > largest && (word & exponent) != exponent;
  }
  return found;
}

int64_t count_too_large(const std::byte* bytes, int64_t count, DType dtype) {
  constexpr uint32_t kLargest = std::bit_cast<uint32_t>(static_cast<float>(kLargestPlausible));
  constexpr int kE8M0 = static_cast<int>(kLargest >> 23U);  // the code is float32's exponent
  switch (dtype) {
    case DType::F32:
      return count_above<uint32_t>(bytes, count, 0x7F800000U, kLargest);
    case DType::BF16:
      return count_above<uint16_t>(bytes, count, 0x7F80U, kLargest >> 16U);
    case DType::F8E8M0:
      return std::count_if(bytes, bytes + count, [](std::byte b) {
        return std::to_integer<int>(b) > kE8M0 && std::to_integer<int>(b) != 255;
      });
    default:
      return 0;
  }
}

bool is_float(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16 || is_f8(dtype) ||
         dtype == DType::F8E8M0;
}

using CountBad = int64_t (*)(const std::byte* bytes, int64_t count, DType dtype);

BadValues find_bad(std::span<const std::byte> bytes, DType dtype, ThreadPool& pool,
                   CountBad count_bad) {
  const int64_t size = bytes_of(dtype);
  std::atomic<int64_t> found{0};
  pool.parallel_for(
      static_cast<int64_t>(bytes.size()) / size, kGrain / size, [&](int64_t begin, int64_t end) {
        const int64_t bad = count_bad(bytes.data() + begin * size, end - begin, dtype);
        if (bad != 0) found.fetch_add(bad, std::memory_order_relaxed);
      });
  BadValues out{found, 0};
  while (out.count != 0 && count_bad(bytes.data() + out.first * size, 1, dtype) == 0) ++out.first;
  return out;
}

// Tensors that a layer or a norm multiplies or adds; others may hold masks of -3e38.
bool is_parameter(std::string_view name) {
  const std::string_view leaf = name.substr(name.rfind('.') + 1);
  return leaf == "weight" || leaf == "bias" || leaf.find("scale") != std::string_view::npos;
}

std::optional<DamagedTensor> damage_of(const TensorEntry& entry, const std::byte* data,
                                       ThreadPool& pool) {
  const std::span bytes(data, entry.bytes);
  const DType dtype = value_dtype(entry.name, entry.dtype);
  DamagedTensor out{entry.name, entry.dtype, entry.shape, find_not_finite(bytes, dtype, pool), {}};
  if (out.values.count != 0) return out;
  if (!is_parameter(entry.name)) return std::nullopt;
  out.values = find_too_large(bytes, dtype, pool);
  if (out.values.count == 0) return std::nullopt;
  const ConstTensorView flat{data, dtype, Shape{entry.shape.elements()}, 0};
  out.too_large = element(flat, out.values.first);
  return out;
}

}  // namespace

CodeCounts count_codes(std::span<const std::byte> codes, ThreadPool& pool) {
  CodeCounts total{};
  std::mutex mutex;
  pool.parallel_for(static_cast<int64_t>(codes.size()), kGrain, [&](int64_t begin, int64_t end) {
    // Four tables: equal codes in a row would wait for each other's count.
    std::array<std::array<uint32_t, 256>, 4> counts{};
    int64_t i = begin;
    for (; i + 4 <= end; i += 4) {
      for (int64_t t = 0; t < 4; ++t) {
        ++counts[static_cast<size_t>(t)]
                [std::to_integer<size_t>(codes[static_cast<size_t>(i + t)])];
      }
    }
    for (; i < end; ++i) ++counts[0][std::to_integer<size_t>(codes[static_cast<size_t>(i)])];
    const std::lock_guard lock(mutex);
    for (size_t code = 0; code < 256; ++code) {
      for (const auto& part : counts) total[code] += part[code];
    }
  });
  return total;
}

BadValues find_not_finite(std::span<const std::byte> bytes, DType dtype, ThreadPool& pool) {
  if (!is_float(dtype)) return {};
  return find_bad(bytes, dtype, pool, count_not_finite);
}

BadValues find_too_large(std::span<const std::byte> bytes, DType dtype, ThreadPool& pool) {
  if (dtype != DType::F32 && dtype != DType::BF16 && dtype != DType::F8E8M0) return {};
  return find_bad(bytes, dtype, pool, count_too_large);
}

DType value_dtype(std::string_view name, DType stored) {
  const bool scale = name.substr(name.rfind('.') + 1).find("scale") != std::string_view::npos;
  return stored == DType::U8 && scale ? DType::F8E8M0 : stored;
}

SubnormalCounts count_subnormals(std::span<const std::byte> bytes, DType dtype, ThreadPool& pool) {
  if (dtype != DType::F32 && dtype != DType::BF16) return {};
  const int64_t size = bytes_of(dtype);
  std::atomic<int64_t> nonzero{0}, subnormal{0};
  pool.parallel_for(
      static_cast<int64_t>(bytes.size()) / size, kGrain / size, [&](int64_t begin, int64_t end) {
        const std::byte* first = bytes.data() + begin * size;
        const SubnormalCounts part =
            dtype == DType::F32 ? subnormals<uint32_t>(first, end - begin, 0x7F800000U, 0x7FFFFFU)
                                : subnormals<uint16_t>(first, end - begin, 0x7F80U, 0x7FU);
        nonzero.fetch_add(part.nonzero, std::memory_order_relaxed);
        subnormal.fetch_add(part.subnormal, std::memory_order_relaxed);
      });
  return {nonzero, subnormal};
}

std::string element_place(const Shape& shape, int64_t index) {
  std::string text;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    text = fmt::format("{}{}{}", index % shape[axis], text.empty() ? "" : ", ", text);
    index /= shape[axis];
  }
  return fmt::format("[{}]", text);
}

std::vector<DamagedTensor> damaged_tensors(const Checkpoint& checkpoint, ThreadPool& pool,
                                           const std::function<void(uint64_t)>& progress) {
  std::vector<DamagedTensor> damaged;
  uint64_t done = 0;
  for (const TensorEntry& entry : checkpoint.tensors()) {
    const ConstTensorView view = checkpoint.view(entry);
    if (view.data != nullptr) {
      if (auto found = damage_of(entry, view.data, pool)) damaged.push_back(*found);
    }
    done += entry.bytes;
    if (progress) progress(done);
  }
  return damaged;
}

}  // namespace octet
