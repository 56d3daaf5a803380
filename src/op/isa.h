#pragma once
// Compiles the functions between BEGIN and END for one instruction set and nothing else in the
// file: static initialisers and inline functions of other headers stay at the baseline and may run
// on any CPU. With OCTET_EMULATED the regions are empty: the same source is then compiled through
// SIMDe for a host that lacks the instructions.
#if defined(OCTET_EMULATED)
#define OCTET_ISA_BEGIN(isa)
#define OCTET_ISA_END
#elif defined(__clang__)
#define OCTET_PRAGMA(x) _Pragma(#x)
#define OCTET_ISA_BEGIN(isa) \
  OCTET_PRAGMA(clang attribute push(__attribute__((target(isa))), apply_to = function))
#define OCTET_ISA_END _Pragma("clang attribute pop")
#else
#define OCTET_PRAGMA(x) _Pragma(#x)
// g++ 12 reports uninitialised values inside its own AVX-512 headers.
#define OCTET_ISA_BEGIN(isa)                                                               \
  _Pragma("GCC push_options") OCTET_PRAGMA(GCC target(isa)) _Pragma("GCC diagnostic push") \
      _Pragma("GCC diagnostic ignored \"-Wuninitialized\"")                                \
          _Pragma("GCC diagnostic ignored \"-Wmaybe-uninitialized\"")
#define OCTET_ISA_END _Pragma("GCC diagnostic pop") _Pragma("GCC pop_options")
#endif
