#pragma once
// The run and scratch_bytes functions of the AVX-512 linear kernels.
// Scratch: pieces | x in the order of the weights [M, chunks, kVectors * 64] | one panel a thread.
#include <atomic>

#include "kernels/cpu/linear_panel_avx512.h"
#include "kernels/cpu/linear_stream_avx512.h"

namespace octet::avx512 {

// Up to this many tokens decoding in registers for each tile of tokens costs less than a panel.
inline constexpr int64_t kStreamTokens = 12;

constexpr size_t round_up_64(size_t bytes) {
  return (bytes + 63) & ~size_t{63};
}

inline size_t piece_bytes(const LinearProblem& problem, int64_t span_chunks) {
  return round_up_64(static_cast<size_t>(piece_bound(problem, span_chunks)) * sizeof(Piece));
}

template <class Weights>
size_t input_stride(const LinearProblem& problem) {
  return static_cast<size_t>(chunks_of(problem.k) * Weights::kVectors) * 64;
}

template <class Weights>
size_t linear_scratch_bytes(const LinearProblem& problem, int64_t m, int threads) {
  return piece_bytes(problem, Weights::kSpanChunks) +
         static_cast<size_t>(m) * input_stride<Weights>(problem) +
         static_cast<size_t>(threads) * panel_bytes<Weights>();
}

OCTET_ISA_BEGIN(OCTET_LINEAR_ISA)

// Puts one row of x into the order of the weights; columns past K are zero.
template <class Input>
void order_row(const Input& input, const LinearArgs& args, int64_t m, std::byte* out) {
  const int64_t k = args.weight->problem.k;
  const auto* row =
      static_cast<const typename Input::Element*>(args.x.data) + m * args.x.row_stride;
  const auto store = [&](const __m512i(&v)[Input::kVectors]) OCTET_LAMBDA_INLINE {
    OCTET_UNROLL
    for (int i = 0; i < Input::kVectors; ++i) _mm512_store_si512(out + 64 * i, v[i]);
    out += 64 * Input::kVectors;
  };
  __m512i v[Input::kVectors];
  for (int64_t c = 0; c < k / kChunk; ++c) {
    input.load(row + c * kChunk, v);
    store(v);
  }
  if (k % kChunk != 0) {
    input.load(row + k / kChunk * kChunk, kWholeChunk >> (kChunk - k % kChunk), v);
    store(v);
  }
}

template <class Weights>
void stream_all(const LinearJob& job, ThreadPool& pool) {
  const int64_t n = job.weight.problem.n;
  pool.run([&](int thread) {
    const int64_t begin = split_begin(n, thread, pool.threads());
    const int64_t end = split_begin(n, thread + 1, pool.threads());
    stream_range(Weights(job.weight.problem.weight.dtype), job, begin, end);
  });
}

// Threads take panels as they come: whichever computes a row, its bits are the same.
template <class Weights>
void panel_all(const LinearJob& job, ThreadPool& pool, std::byte* panels) {
  const int64_t n = job.weight.problem.n;
  const int64_t share = (n + 4 * pool.threads() - 1) / (4 * pool.threads());
  const int64_t rows = std::clamp<int64_t>((share + 3) / 4 * 4, 16, kPanelRows);
  std::atomic<int64_t> next{0};
  pool.run([&](int thread) {
    const Weights weights(job.weight.problem.weight.dtype);
    std::byte* panel = panels + static_cast<size_t>(thread) * panel_bytes<Weights>();
    for (;;) {
      const int64_t begin = next.fetch_add(rows, std::memory_order_relaxed);
      if (begin >= n) return;
      panel_rows(weights, job, panel, begin, std::min(rows, n - begin));
    }
  });
}

// LinearKernel::run. x_dtype names the codes of a quantised input.
template <class Weights, class Input>
void run_linear(const LinearArgs& args, Stream& stream) noexcept {
  const PackedWeight& weight = *args.weight;
  const LinearProblem& problem = weight.problem;
  ThreadPool& pool = stream.pool();
  if (args.m == 0) return;

  auto* scratch = static_cast<std::byte*>(args.scratch);
  auto* pieces = reinterpret_cast<Piece*>(scratch);
  std::byte* x = scratch + piece_bytes(problem, Weights::kSpanChunks);
  const size_t x_stride = input_stride<Weights>(problem);
  const Input input(problem.activation ? problem.activation->dtype : problem.input);
  pool.parallel_for(args.m, kStreamTokens, [&](int64_t begin, int64_t end) {
    for (int64_t m = begin; m < end; ++m) {
      order_row(input, args, m, x + static_cast<size_t>(m) * x_stride);
    }
  });

  const LinearJob job{args,
                      weight,
                      WeightScales(weight),
                      InputScales(args.x, problem),
                      pieces,
                      make_pieces(problem, Weights::kSpanChunks, pieces),
                      x,
                      x_stride};
  if (args.m <= kStreamTokens) return stream_all<Weights>(job, pool);
  panel_all<Weights>(job, pool, x + static_cast<size_t>(args.m) * x_stride);
}

OCTET_ISA_END

}  // namespace octet::avx512
