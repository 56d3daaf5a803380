#pragma once
// The AVX2 linear kernels as their records see them: scratch, the input put in lane order, and the
// rows shared out over the threads.
#include "kernels/cpu/linear_panel_avx2.h"
#include "kernels/cpu/linear_stream_avx2.h"

namespace octet::avx2 {

OCTET_ISA_BEGIN("avx2,fma,f16c")

// One step of float x in the lane order of paired weights.
OCTET_ALWAYS_INLINE Step in_paired_order(const Step& s) {
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

// Multiplies `count` elements of a step of x, which begin at column k of token m, with the scales
// of their groups.
template <bool kPaired>
OCTET_ALWAYS_INLINE void scale_step(const Job& job, int64_t m, int64_t k, int64_t count,
                                    float* step) {
  const ScaleTile& tile = job.weight->problem.activation->tile;
  const int64_t group = tile.tile_col(k);
  if (tile.tile_col(k + count - 1) == group) {
    const __m256 scale = _mm256_set1_ps(job.input_scales.at(m, group));
    OCTET_UNROLL
    for (int j = 0; j < 4; ++j) {
      _mm256_storeu_ps(step + 8 * j, _mm256_mul_ps(_mm256_loadu_ps(step + 8 * j), scale));
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    step[kPaired ? paired_position(i) : i] *= job.input_scales.at(m, tile.tile_col(k + i));
  }
}

// A piece of token m of x to every stride-th 32 floats of `out`, in lane order. X: the element type
// of x. Codes come out in paired order by themselves; floats are reordered for paired weights.
template <class X, bool kPaired>
void pack_piece(const Job& job, int64_t m, const Piece& piece, float* out, int64_t stride) {
  static_assert(kPaired || !X::kPaired, "codes meet weights of another lane order");
  const auto* x = static_cast<const typename X::Element*>(job.args->x.data) +
                  m * job.args->x.row_stride + piece.k;
  for (int64_t k = 0; k < piece.length; k += kStep, x += kStep, out += stride) {
    Watch watch{_mm256_setzero_si256()};
    const int64_t count = piece.length - k < kStep ? piece.length - k : kStep;
    Step step = count == kStep ? X::decode(x, watch) : decode_part<X>(x, count, watch);
    if constexpr (kPaired && !X::kPaired) step = in_paired_order(step);
    store_step(out, step);
    if constexpr (X::kWatched) {
      if (watch.saw_e4m3_nan()) plant_nan(x, count, out, kStep);
    }
    if (job.grouped) scale_step<kPaired>(job, m, piece.k + k, count, out);
  }
}

// The tokens of tiles [begin, end) in the order of Job::x.
template <class X, bool kPaired>
void pack_tiles(const Job& job, float* packed, int64_t begin, int64_t end) {
  const Tiles& tiles = job.plan->tiles;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t token = tiles.first(i), size = tiles.size(i);
    for (int64_t c = 0; c < job.plan->k.chunks; ++c) {
      const Chunk& chunk = job.chunks[c];
      float* out = packed + (job.x_of(chunk, token, size) - job.x);
      for (int64_t p = chunk.piece_begin; p < chunk.piece_end; ++p) {
        const Piece& piece = job.pieces[p];
        for (int64_t t = 0; t < size; ++t) {
          pack_piece<X, kPaired>(job, token + t, piece, out + t * kStep, size * kStep);
        }
        out += piece.steps * size * kStep;
      }
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
  const LinearProblem& problem = args.weight->problem;
  if (args.m == 0 || problem.n == 0) return;
  ThreadPool& pool = stream.pool();
  const Plan plan(problem, args.m, pool.threads());
  auto* scratch = static_cast<std::byte*>(args.scratch);
  auto* pieces = reinterpret_cast<Piece*>(scratch);
  auto* chunks = reinterpret_cast<Chunk*>(scratch + plan.chunks_at);
  auto* x = reinterpret_cast<float*>(scratch + plan.x_at);
  make_pieces(problem, pieces, chunks);
  const Job job{.args = &args,
                .weight = args.weight,
                .plan = &plan,
                .pieces = pieces,
                .chunks = chunks,
                .x = x,
                .weight_scales = WeightScales(*args.weight),
                .input_scales = InputScales(args.x, problem),
                .grouped = problem.activation && problem.activation->tile.cols != kWhole,
                .unit = W::kUnit * X::kUnit};
  // Putting 16384 elements in order takes about as long as waking a thread.
  const int64_t grain = 1 + 16384 / (3 * plan.k.steps * kStep);
  pool.parallel_for(plan.tiles.count, grain, [&](int64_t begin, int64_t end) {
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
    panel_rows<W>(job, begin, end,
                  {reinterpret_cast<float*>(mine), reinterpret_cast<float*>(mine + plan.lanes_at),
                   reinterpret_cast<float*>(mine + plan.totals_at)});
  });
}

}  // namespace octet::avx2
