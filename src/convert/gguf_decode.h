#pragma once
// Blocks of a GGUF tensor to bfloat16.
#include <cstddef>
#include <cstdint>
#include <span>

#include "io/gguf_type.h"

namespace octet {

// Writes the values of whole blocks to `out`, as bf16 bits. A value is the float32 that ggml's
// formats define (ggml-quants.c, dequantize_row_*), rounded once, to nearest even:
//   Q4_0  d * (q - 8)   f16 d, 16 bytes: low nibbles are elements 0 to 15, high ones 16 to 31
//   Q4_1  d * q + m     f16 d and m, the same nibbles
//   Q8_0  d * q         f16 d, 32 signed bytes
// Requires that `blocks` holds out.size() elements of `type`. Returns the index of the first value
// that is not finite, or out.size().
size_t decode_blocks(GgufDecode type, std::span<const std::byte> blocks, std::span<uint16_t> out);

}  // namespace octet
