#pragma once
// The x86 intrinsics of kernel files: the compiler's own, or emulated ones where OCTET_EMULATED
// says that the file is built for a host without these instructions. Include it instead of
// <immintrin.h>.
#if defined(OCTET_EMULATED)
#include <simde_shim.h>
#else
#include <immintrin.h>
#endif

// For the small functions that a kernel's inner loop is made of: registers do not survive a call.
#define OCTET_ALWAYS_INLINE inline __attribute__((always_inline))

// The same for a lambda, after its parameters.
#define OCTET_LAMBDA_INLINE __attribute__((always_inline))

// Before a loop over registers: its trip count is a constant and an index must become a name.
#if defined(__clang__)
#define OCTET_UNROLL _Pragma("clang loop unroll(full)")
#else
#define OCTET_UNROLL _Pragma("GCC unroll 32")
#endif
