#pragma once
// The AVX2 linear kernels as their records see them: scratch, the input put in lane order, and the
// rows shared out over the threads.
#include "kernels/cpu/linear_panel_avx2.h"
#include "kernels/cpu/linear_stream_avx2.h"

namespace octet::avx2 {

OCTET_ISA_BEGIN("avx2,fma,f16c")

// One step of float x in the lane order of the weights.
template <bool kPaired>
OCTET_ALWAYS_INLINE Step in_lane_order(const Step& s) {
  if constexpr (!kPaired) return s;
  Step out;
  OCTET_UNROLL
  for (int half = 0; half < 2; ++half) {
    const __m256 a = s.v[2 * half], b = s.v[2 * half + 1];
    const __m256d even = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
    const __m256d odd = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xDD));
    out.v[2 * half] = _mm256_castpd_ps(_mm256_permute4x64_pd(even, 0xD8));
    out.v[2 * half + 1] = _mm256_castpd_ps(_mm256_permute4x64_pd(odd, 0xD8));
  }
  return out;
}

// One row of x to every stride-th 32 floats of `out`. X: the element type of x. Codes come out in
// lane order by themselves and need paired weights; floats are reordered.
template <class X, bool kPaired>
void pack_row(const Job& job, const typename X::Element* x, float* out, int64_t stride) {
  for (int64_t i = 0; i < job.plan->count.pieces; ++i) {
    const Piece& piece = job.pieces[i];
    for (int64_t k = 0; k < piece.length; k += kStep, out += stride) {
      Watch watch{_mm256_setzero_si256()};
      const auto* from = x + piece.k + k;
      const int64_t count = piece.length - k < kStep ? piece.length - k : kStep;
      Step step = count == kStep ? X::decode(from, watch) : decode_part<X>(from, count, watch);
      if constexpr (!X::kPaired) step = in_lane_order<kPaired>(step);
      OCTET_UNROLL
      for (int j = 0; j < 4; ++j) _mm256_storeu_ps(out + 8 * j, step.v[j]);
      if constexpr (X::kWatched) {
        if (watch.saw_e4m3_nan()) plant_nan(from, count, out);
      }
    }
  }
}

// The tokens of tiles [begin, end).
template <class X, bool kPaired>
void pack_tiles(const Job& job, float* packed, int64_t begin, int64_t end) {
  const Tiles tiles(job.plan->m);
  const auto* x = static_cast<const typename X::Element*>(job.args->x.data);
  for (int64_t i = begin; i < end; ++i) {
    const int64_t token = tiles.first(i), size = tiles.size(i);
    float* tile = packed + token * job.plan->count.steps * kStep;
    for (int64_t t = 0; t < size; ++t) {
      pack_row<X, kPaired>(job, x + (token + t) * job.args->x.row_stride, tile + t * kStep,
                           size * kStep);
    }
  }
}

OCTET_ISA_END

// Scratch of one call: `scratch_bytes` of every AVX2 linear kernel.
inline size_t scratch_bytes(const LinearProblem& problem, int64_t m, int threads) {
  return m == 0 ? 0 : Plan(problem, m, threads).bytes();
}

// y of every token. W and X: element types of the weight and of x.
template <class W, class X>
void run(const LinearArgs& args, Stream& stream) {
  if (args.m == 0 || args.weight->problem.n == 0) return;
  const LinearProblem& problem = args.weight->problem;
  ThreadPool& pool = stream.pool();
  const Plan plan(problem, args.m, pool.threads());
  auto* scratch = static_cast<std::byte*>(args.scratch);
  auto* pieces = reinterpret_cast<Piece*>(scratch);
  auto* x = reinterpret_cast<float*>(scratch + plan.x_at);
  make_pieces(problem, pieces);
  const InputScales input_scales(args.x, problem);
  const Job job{.args = &args,
                .weight = args.weight,
                .plan = &plan,
                .pieces = pieces,
                .x = x,
                .weight_scales = WeightScales(*args.weight),
                .input_scales = input_scales,
                .grouped = problem.activation && problem.activation->tile.cols != kWhole,
                .unit = W::kUnit * X::kUnit};
  // Putting 16384 elements in order takes about as long as waking a thread.
  const int64_t grain = 1 + 16384 / (3 * plan.count.steps * kStep);
  pool.parallel_for(Tiles(plan.m).count, grain, [&](int64_t begin, int64_t end) {
    pack_tiles<X, W::kPaired>(job, x, begin, end);
  });
  pool.run([&](int thread) {
    const int64_t begin = split_begin(problem.n, thread, plan.threads);
    const int64_t end = split_begin(problem.n, thread + 1, plan.threads);
    if (begin == end) return;
    if (plan.streams()) {
      stream_rows<W>(job, begin, end);
      return;
    }
    std::byte* mine = scratch + plan.threads_at + static_cast<size_t>(thread) * plan.thread_bytes;
    panels<W>(job, begin, end,
              {reinterpret_cast<float*>(mine), reinterpret_cast<float*>(mine + plan.lanes_at),
               reinterpret_cast<float*>(mine + plan.totals_at)});
  });
}

}  // namespace octet::avx2
