#include "kernels/cpu/linear_ref.h"

#include "base/error.h"

#include "kernels/cpu/linear_segments.h"

namespace octet::reference {
namespace {

// Row r of a row-major tensor, wrapped for its element type and handed to `use`.
template <class Use>
void with_row(DType dtype, const void* data, int64_t offset, const Use& use) {
  switch (dtype) {
    case DType::F8E4M3:
    case DType::F8E5M2:
      return use(F8Row{static_cast<const uint8_t*>(data) + offset, f8_table(dtype).data()});
    case DType::BF16:
      return use(Bf16Row{static_cast<const uint16_t*>(data) + offset});
    case DType::F16:
      return use(F16Row{static_cast<const uint16_t*>(data) + offset});
    case DType::F32:
      return use(F32Row{static_cast<const float*>(data) + offset});
    case DType::F8E8M0:
    case DType::I64:
    case DType::I32:
    case DType::I16:
    case DType::I8:
    case DType::U8:
    case DType::Bool:
      break;
  }
  OCTET_CHECK(false, "no kernel record declares {}", name(dtype));
}

// One value of y without its bias.
template <class X, class W>
double dot(const LinearProblem& problem, const X& x, const W& w, const float* weight_scales,
           const InputScales& input_scales, int64_t m) {
  double total = 0;
  Segments walk(problem);
  for (Segment s; walk.next(s);) {
    double sum = 0;
    for (int64_t k = s.begin; k < s.end; ++k) sum += static_cast<double>(x[k]) * w[k];
    const double weight_scale = weight_scales == nullptr ? 1.0 : weight_scales[s.weight_col];
    total += sum * weight_scale * input_scales.at(m, s.input_col);
  }
  return total;
}

}  // namespace

void run_linear(const LinearArgs& args, Stream& stream) noexcept {
  const PackedWeight& weight = *args.weight;
  const LinearProblem& problem = weight.problem;
  const DType x_dtype = problem.activation ? problem.activation->dtype : problem.input;
  const WeightScales weight_scales(weight);
  const InputScales input_scales(args.x, problem);
  stream.pool().parallel_for(problem.n, 8, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const double bias = weight.bias == nullptr ? 0.0 : weight.bias[n];
      with_row(problem.weight.dtype, weight.codes, n * weight.row_stride, [&](const auto& w) {
        for (int64_t m = 0; m < args.m; ++m) {
          with_row(x_dtype, args.x.data, m * args.x.row_stride, [&](const auto& x) {
            const double value = dot(problem, x, w, weight_scales.row(n), input_scales, m);
            args.y[m * args.y_stride + n] = static_cast<float>(value + bias);
          });
        }
      });
    }
  });
}

}  // namespace octet::reference
