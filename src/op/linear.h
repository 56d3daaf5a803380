#pragma once
// The linear layer: what it computes, what a kernel declares, and how a kernel is judged.
//   y[M,N] = x[M,K] * W[N,K]^T (+ bias[N]);  W = decode(codes) * scales, x as the scheme leaves it
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "num/quant_spec.h"
#include "num/tensor.h"
#include "op/catalog.h"

namespace octet {

// The arithmetic of a linear layer. Plain: weights are not quantised.
enum class SchemeId : uint8_t { W8A8, W8A16, Plain };
constexpr std::string_view name(SchemeId s) {
  constexpr std::string_view kNames[] = {"w8a8", "w8a16", "plain"};
  return kNames[static_cast<int>(s)];
}

// One linear layer as a scheme would compute it.
struct LinearProblem {
  SchemeId scheme = SchemeId::Plain;
  int64_t n = 0;                        // output features
  int64_t k = 0;                        // input features
  QuantSpec weight;                     // as stored in the checkpoint
  std::optional<QuantSpec> activation;  // what x is quantised to; nullopt: x stays `input`
  DType input = DType::F32;             // carrier of x when it is not quantised
  DType output = DType::F32;

  bool operator==(const LinearProblem&) const = default;
};

// A weight ready for the kernel whose `layout` it carries. CPU: codes stay in the checkpoint's
// mmap, scales are widened.
struct PackedWeight {
  std::string_view layout;
  LinearProblem problem;
  const void* codes = nullptr;  // [N, K] of problem.weight.dtype, device address
  int64_t row_stride = 0;       // elements between rows of codes
  const float* scales =
      nullptr;             // [tile_rows(N), tile_cols(K)] f32, row-major, dense; null for Plain
  int64_t scale_cols = 0;  // elements between rows of scales
  const float* bias = nullptr;         // [N] f32, or null
  const float* input_scale = nullptr;  // [1] f32, static activations only
  Buffer storage;  // of whatever was copied: scales, bias, input scale, a repacked layout
};

// x of a linear layer. Requires 64-byte aligned rows only where a kernel's caps say so.
struct LinearInput {
  const void* data =
      nullptr;  // [M, K] of activation->dtype when quantised, else of problem.input; row-major
  int64_t row_stride = 0;         // in elements
  const float* scales = nullptr;  // x = decode(data) * scales: [M, tile_cols(K)] for row or group
                                  // tiles, [1] for a tensor tile
};

struct LinearArgs {
  const PackedWeight* weight = nullptr;
  int64_t m = 0;  // tokens
  LinearInput x;
  float* y = nullptr;       // [M, N] f32
  int64_t y_stride = 0;     // in elements
  void* scratch = nullptr;  // scratch_bytes(problem, m, threads) bytes, 64-byte aligned
};

// Data only: one function judges every kernel.
struct LinearCaps {
  EnumSet<DType> weight_dtypes;
  EnumSet<Granularity> weight_scales;  // empty: plain weights
  EnumSet<DType> scale_dtypes = {DType::F32, DType::F16, DType::BF16};
  EnumSet<Granularity> activation_scales = {};  // empty: takes x unquantised
  EnumSet<DType> activation_dtypes = {};        // codes of x, W8A8 only
  EnumSet<DType> inputs = {DType::F32};         // carrier of x when it is not quantised
  EnumSet<DType> outputs = {DType::F32};
  int64_t n_multiple = 1, k_multiple = 1;  // in elements
};

// The order of sums of a kernel, from which tests derive their bound (num/error_bound.h): every
// output is the sum of `lanes` interleaved partial sums over K, then one addition per scale
// segment.
struct ErrorModel {
  int64_t lanes = 1;  // independent partial sums per output and segment
  int64_t run = 1;    // elements that a lane takes of each lanes * run
  int64_t roundings =
      1;  // roundings per product beyond the f32 additions (scale factors, a rounded panel)
  // Scales of input groups are multiplied into x (one of `roundings`) before the sums: the edges of
  // the groups end no segment.
  bool scales_input_first = false;
  bool wide = false;             // sums are kept in f64 and cost nothing: only `roundings` count
  bool batch_invariant = false;  // a row of y has the same bits whatever the other rows and M are
};

struct LinearKernel {
  std::string_view name;  // "<device>.linear.<scheme>.<weight>.<isa>", unique
  DeviceKind device;
  SchemeId scheme;
  int preference;  // bands as in catalog.h; unique per device
  Features needs;
  LinearCaps caps;
  std::string_view layout;  // of the PackedWeight it makes and reads
  ErrorModel error;
  std::optional<Refusal> (*special)(const LinearProblem&) = nullptr;  // what data cannot say
  size_t (*scratch_bytes)(const LinearProblem&, int64_t m, int threads) = nullptr;  // null: none
  // Device bytes of the codes of an [n, k] weight in `layout`; null: as many as the checkpoint's.
  uint64_t (*code_bytes)(int64_t n, int64_t k) = nullptr;
  PackedWeight (*pack)(const QuantView&, const LinearProblem&, Device&, Stream&);
  void (*run)(const LinearArgs&, Stream&) noexcept;
};

// Why `kernel` cannot run `problem` on `device`: all reasons; only the device if it is another one.
std::vector<Refusal> refusals(const LinearKernel& kernel, const LinearProblem& problem,
                              const DeviceInfo& device);

// The layout of every kernel that reads the checkpoint's bytes where they lie.
inline constexpr std::string_view kCheckpointLayout = "checkpoint[N,K]";

// The pack function for kCheckpointLayout: codes stay where `view` has them (copied only when the
// device cannot read host memory), scales become a dense f32 grid, bias and input scale f32. Cost:
// O(scales).
PackedWeight pack_in_place(const QuantView& view, const LinearProblem& problem, Device& device,
                           Stream& stream);

// What pack functions of other layouts begin with: storage that begins with `code_bytes` bytes for
// the codes (`codes` points there, nothing is written to them) and holds scales, bias and input
// scale behind them, as pack_in_place has them.
PackedWeight pack_beside(const QuantView& view, const LinearProblem& problem, Device& device,
                         Stream& stream, uint64_t code_bytes);

// Queues the copy of the codes of rows `rows` of the view, dense, to `device_dst`.
void upload_rows(const QuantView& view, Range rows, std::byte* device_dst, Stream& stream);

// Device bytes that pack_in_place allocates for an [n, k] record: what the plan counts beside the
// codes.
uint64_t in_place_bytes(const QuantSpec& weight, int64_t n, int64_t k, bool bias);

}  // namespace octet
