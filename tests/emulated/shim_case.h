#pragma once
// One intrinsic as a function of bytes, so that its hardware and its emulated form can be compared.
#include <cstdint>
#include <span>

namespace octet {

// How the 64 result bytes are compared: floats of which NaN equals NaN, or bits.
enum class Lanes : uint8_t { Bits, F32, F64 };

struct ShimCase {
  const char* name;
  Lanes lanes;
  void (*run)(const uint8_t* in, uint8_t* out);  // in: 192 bytes, out: 64 bytes
};

// The same cases in the same order; those of `hardware` need AVX-512 with BF16 and VBMI.
namespace hardware {
std::span<const ShimCase> cases();
}
namespace emulation {
std::span<const ShimCase> cases();
}

}  // namespace octet
