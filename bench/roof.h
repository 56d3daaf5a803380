#pragma once
// What the machine itself can do, measured beside the code that is judged by it: plain reads of
// memory and multiply-add loops in registers.
#include <cstddef>
#include <cstdint>

#include "device/info.h"

namespace octet::bench {

// How memory is read: one run, or four runs side by side, which most machines deliver faster; with
// a prefetch ahead of the loads, which helps where pages are small.
enum class Read : uint8_t { OneStream, FourStreams, FourStreamsAhead };
inline constexpr Read kReads[] = {Read::OneStream, Read::FourStreams, Read::FourStreamsAhead};

// Reads `bytes` bytes (a multiple of 1024) and returns something that depends on all of them.
// Requires AVX2 where `avx2` is true; loads of 16 bytes otherwise.
uint64_t read_memory(const void* data, size_t bytes, Read how, bool avx2);

// The multiply-add instruction whose rate is the peak of a kernel.
enum class Peak : uint8_t { Sse, Avx2Fma, Avx512Fma, Avx512Bf16 };

// The peak that a kernel with these needs is measured against.
Peak peak_of(Features needs);
const char* name(Peak peak);

// Runs `rounds` rounds of independent multiply-adds; returns the floating point operations done.
// Requires a processor with the instruction.
double spin_peak(Peak peak, int64_t rounds);

}  // namespace octet::bench
