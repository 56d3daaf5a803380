#pragma once
// One weight matrix to FP8: the arithmetic of llm-compressor, to the bit.
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "num/tensor.h"

namespace octet {

struct QuantizedWeight {
  std::vector<uint8_t> codes;     // [N, K] E4M3
  std::vector<std::byte> scales;  // grid of the tile, in the dtype of the weight
  Shape scale_shape;              // tensor [1], row [N, 1], block [ceil(N / rows), ceil(K / cols)]
};

// Every step is rounded to the dtype of the weight (f32, f16 or bf16), nearest even:
//   scale = round(amax / 448), or the dtype's epsilon where that is 0
//   code  = e4m3(clamp(round(w / scale), -448, 448))
// With a tensor tile a quotient of -0 becomes +0, as the tool adds a zero point there. Source:
// compressed-tensors quantization/utils/helpers.py (calculate_qparams) and lifecycle/forward.py
// (quantize).
QuantizedWeight quantize_weight(const ConstTensorView& weight, const ScaleTile& tile,
                                ThreadPool& pool);

// The same formula for a scale alone: round(amax / 448) in `dtype`, or its epsilon; as the bytes of
// one element.
std::vector<std::byte> scale_bytes(float amax, DType dtype);

}  // namespace octet
