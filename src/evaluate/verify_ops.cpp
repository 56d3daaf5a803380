#include "evaluate/verify_ops.h"

#include <algorithm>
#include <cmath>

#include "base/split_mix.h"
#include "model/batch.h"
#include "num/tensor.h"
#include "op/pointwise_reference.h"

namespace octet {
namespace {

// Token ids of this rank's part of the embedding: the ends, some between, in no order.
std::vector<int32_t> some_ids(int64_t first, int64_t entries, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<int64_t> rows{entries - 1, 0};
  for (int i = 0; i < 14; ++i) rows.push_back(random.below(entries));
  std::vector<int32_t> ids;
  for (const int64_t row : rows) ids.push_back(static_cast<int32_t>(first + row));
  return ids;
}

// Runs a gather of rows `ids` and compares it with the table's own bytes.
OpCheck check_gather(const OpCheckScope& scope, const Kernel<Gather>& kernel, Gather::Args args,
                     const std::vector<int32_t>& ids, DeviceArrays& arrays) {
  const auto width = static_cast<size_t>(args.width);
  const auto row_bytes = static_cast<size_t>(args.width * bytes_of(args.table_dtype));
  auto* out = static_cast<float*>(arrays.bytes(ids.size() * width * sizeof(float)));
  args.ids = arrays.up(ids);
  args.out = out;
  args.rows = static_cast<int64_t>(ids.size());
  launch(kernel, args, scope.stream);
  const std::vector<float> got = arrays.down(out, ids.size() * width);
  OpComparison comparison;
  for (size_t row = 0; row < ids.size(); ++row) {
    const int64_t at = (ids[row] - args.first_entry) * args.table_stride;
    const auto* source =
        static_cast<const std::byte*>(args.table) + at * bytes_of(args.table_dtype);
    const std::vector<std::byte> stored = arrays.down(source, row_bytes);
    for (size_t i = 0; i < width; ++i) {
      const auto column = static_cast<int64_t>(i);
      comparison.equal({"row", -1, static_cast<int64_t>(row), column}, got[row * width + i],
                       element({stored.data(), args.table_dtype, {}, 0}, column));
    }
  }
  return std::move(comparison).result();
}

// A few rows of the width of the MLP or the residual.
constexpr int64_t kRows = 3;

}  // namespace

OpCheck check_embedding(const OpCheckScope& scope, const Kernel<Gather>& kernel) {
  const Model& model = scope.model;
  const ModelDims& dims = model.plan.dims;
  DeviceArrays arrays(scope);
  Gather::Args args;
  args.table = model.embedding;
  args.table_dtype = model.plan.request.embedding;
  args.table_stride = args.width = dims.hidden;
  args.first_entry = model.embedding_first;
  args.entries = dims.vocab;
  return check_gather(scope, kernel, args, some_ids(model.embedding_first, dims.vocab, scope.seed),
                      arrays);
}

OpCheck check_gather_rows(const OpCheckScope& scope, const Kernel<Gather>& kernel) {
  constexpr int64_t kEntries = 40;
  const int64_t width = scope.model.plan.dims.hidden;
  DeviceArrays arrays(scope);
  Gather::Args args;
  args.table = arrays.up(random_values(kEntries * width, scope.seed));
  args.table_dtype = DType::F32;
  args.table_stride = args.width = width;
  args.entries = kEntries;
  return check_gather(scope, kernel, args, some_ids(0, kEntries, scope.seed), arrays);
}

OpCheck check_silu_mul(const OpCheckScope& scope, const Kernel<SiluMul>& kernel) {
  const int64_t width = scope.model.plan.dims.intermediate;
  const bool round = scope.rounds_bf16();
  std::vector<float> gate = random_values(kRows * width, scope.seed);
  std::vector<float> up = random_values(kRows * width, scope.seed + 1);
  for (float& value : gate) value *= 4;
  // Gates where exp() leaves float32.
  constexpr float kExtreme[] = {0, 88, -88, 104, -104, 200, -200};
  for (size_t i = 0; i < std::min(gate.size(), std::size(kExtreme)); ++i) gate[i] = kExtreme[i];
  if (round) {
    for (float& value : gate) value = static_cast<float>(as_stored(DType::BF16, value));
    for (float& value : up) value = static_cast<float>(as_stored(DType::BF16, value));
  }
  DeviceArrays arrays(scope);
  float* out = arrays.up(gate);
  launch(kernel, SiluMul::Args{out, arrays.up(up), width, out, width, kRows, width, round},
         scope.stream);
  const std::vector<float> got = arrays.down(out, gate.size());
  OpComparison comparison;
  for (int64_t i = 0; i < kRows * width; ++i) {
    const auto at = static_cast<size_t>(i);
    comparison.compare({"out", -1, i / width, i % width}, got[at],
                       silu_mul_reference(gate[at], up[at], round));
  }
  return std::move(comparison).result();
}

OpCheck check_round(const OpCheckScope& scope, const Kernel<RoundBf16>& kernel) {
  const int64_t width = scope.model.plan.dims.hidden;
  std::vector<float> x = random_values(kRows * width, scope.seed);
  // Every other value lies between two of bfloat16, or next to that.
  for (size_t i = 0; i < x.size(); i += 2) {
    const auto down = static_cast<float>(as_stored(DType::BF16, x[i]));
    x[i] = down * (1 + 0x1p-8F) + down * (static_cast<float>(i % 3) - 1) * 0x1p-22F;
  }
  DeviceArrays arrays(scope);
  float* device = arrays.up(x);
  launch(kernel, RoundBf16::Args{device, width, kRows, width}, scope.stream);
  const std::vector<float> got = arrays.down(device, x.size());
  OpComparison comparison;
  for (int64_t i = 0; i < kRows * width; ++i) {
    const auto at = static_cast<size_t>(i);
    comparison.equal({"x", -1, i / width, i % width}, got[at], as_stored(DType::BF16, x[at]));
  }
  return std::move(comparison).result();
}

OpCheck check_absmax(const OpCheckScope& scope, const Kernel<AbsMax>& kernel) {
  const int64_t width = scope.model.plan.dims.hidden;
  std::vector<float> x = random_values(kRows * width, scope.seed);
  DeviceArrays arrays(scope);
  float* out = arrays.up(std::vector<float>{0});
  OpComparison comparison;
  // The largest so far stands at each of the first columns and of the last.
  constexpr int64_t kEnds = 20;
  double largest = 0;
  for (int64_t turn = 0; turn < 2 * kEnds; ++turn) {
    const int64_t column = turn < kEnds ? turn : width - 1 - (turn - kEnds);
    if (column < 0 || column >= width) continue;
    const auto at = static_cast<size_t>(turn % kRows * width + column);
    x[at] = static_cast<float>(turn % 2 == 0 ? 20 + turn : -20 - turn);
    for (const float value : x) largest = std::max(largest, std::fabs(double{value}));
    launch(kernel, AbsMax::Args{arrays.up(x), width, kRows, width, out}, scope.stream);
    comparison.equal({"out", -1, turn, 0}, arrays.down(out, 1).front(), largest);
  }
  return std::move(comparison).result();
}

}  // namespace octet
