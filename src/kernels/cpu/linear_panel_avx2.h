#pragma once
// Three tokens and more: quads of rows are decoded to float panels in L1 or L2, and each panel
// meets every tile of tokens. A tile is 4 rows x 3 tokens of 8 partial sums along K, the dot form:
// lanes and order of the sums are those of the stream form, so a row of y does not depend on how
// many tokens there are.
#include "kernels/cpu/linear_job_avx2.h"

namespace octet::avx2 {

OCTET_ISA_BEGIN("avx2,fma,f16c")

// Replaces the elements of a panel row that come from NaN codes.
inline void plant_nan(const uint8_t* codes, int64_t length, float* panel_row) {
  for (int64_t i = 0; i < length; ++i) {
    if (is_e4m3_nan(codes[i])) {
      panel_row[i / kStep * 4 * kStep + paired_position(i % kStep)] = __builtin_nanf("");
    }
  }
}

// Decodes one row of a piece to panel[step][4 rows][32], at the row's place.
template <class F>
void decode_row(const typename F::Element* w, const Piece& piece, float* panel_row) {
  Watch watch{_mm256_setzero_si256()};
  const int64_t whole = piece.length / kStep;
  float* out = panel_row;
  for (int64_t s = 0; s < whole; ++s, out += 4 * kStep) {
    _mm_prefetch(reinterpret_cast<const char*>(w + (s + kPieceSteps) * kStep), _MM_HINT_T0);
    const Step step = F::decode(w + s * kStep, watch);
    OCTET_UNROLL
    for (int j = 0; j < 4; ++j) _mm256_storeu_ps(out + 8 * j, step.v[j]);
  }
  if (const int64_t rest = piece.length % kStep; rest != 0) {
    const Step step = decode_part<F>(w + whole * kStep, rest, watch);
    OCTET_UNROLL
    for (int j = 0; j < 4; ++j) _mm256_storeu_ps(out + 8 * j, step.v[j]);
  }
  if constexpr (F::kWatched) {
    if (watch.saw_e4m3_nan()) plant_nan(w, piece.length, panel_row);
  }
}

// Where one tile keeps its sums between pieces: [token][4 rows][8] floats each; the two may be one.
struct Sums {
  float* lanes;
  float* totals;
};

// Adds one piece to the sums of T tokens x 4 rows, and its segment to the totals when it ends.
template <int T>
void tile(const Job& job, const Piece& piece, const QuadScales& scales, const float* panel,
          const float* x, int64_t first_token, Sums sums) {
  __m256 lanes[T][4];
  OCTET_UNROLL
  for (int t = 0; t < T; ++t) {
    OCTET_UNROLL
    for (int r = 0; r < 4; ++r) {
      lanes[t][r] =
          piece.begins ? _mm256_setzero_ps() : _mm256_loadu_ps(sums.lanes + (t * 4 + r) * 8);
    }
  }
  for (int64_t s = 0; s < piece.steps; ++s, panel += 4 * kStep, x += T * kStep) {
    OCTET_UNROLL
    for (int j = 0; j < 4; ++j) {
      __m256 xs[T];
      OCTET_UNROLL
      for (int t = 0; t < T; ++t) xs[t] = _mm256_loadu_ps(x + t * kStep + 8 * j);
      OCTET_UNROLL
      for (int r = 0; r < 4; ++r) {
        const __m256 w = _mm256_loadu_ps(panel + r * kStep + 8 * j);
        OCTET_UNROLL
        for (int t = 0; t < T; ++t) lanes[t][r] = _mm256_fmadd_ps(w, xs[t], lanes[t][r]);
      }
    }
  }
  const bool first_segment = piece.weight_col == 0 && piece.input_col == 0;
  OCTET_UNROLL
  for (int t = 0; t < T; ++t) {
    const float input_scale =
        job.grouped ? job.input_scales.at(first_token + t, piece.input_col) : 1.0F;
    OCTET_UNROLL
    for (int r = 0; r < 4; ++r) {
      if (!piece.ends) {
        _mm256_storeu_ps(sums.lanes + (t * 4 + r) * 8, lanes[t][r]);
        continue;
      }
      float* total = sums.totals + (t * 4 + r) * 8;
      const __m256 before = first_segment ? _mm256_setzero_ps() : _mm256_loadu_ps(total);
      const float scale = scales.row[r][piece.weight_col] * job.unit;
      _mm256_storeu_ps(total, scaled_add(lanes[t][r], scale, job.grouped, input_scale, before));
    }
  }
}

// The pieces that are decoded together: as many as fill the panel of a quad.
struct Chunk {
  int64_t begin = 0, end = 0;  // pieces
};
inline Chunk next_chunk(const Job& job, int64_t begin) {
  Chunk chunk{begin, begin};
  int64_t steps = 0;
  while (chunk.end < job.plan->count.pieces && steps + job.pieces[chunk.end].steps <= kPieceSteps) {
    steps += job.pieces[chunk.end++].steps;
  }
  return chunk;
}

// A thread's part of the scratch.
struct Workspace {
  float* panel;   // [quads of a panel][kPieceSteps][4 rows][32]
  float* lanes;   // [quads of a panel][tokens of a block][4 rows][8]
  float* totals;  // the same; equal to `lanes` where one will do
};

// Rows [quad, quad_end) for the tokens of tiles [tile_begin, tile_end).
struct PanelBlock {
  const Rows* rows;
  int64_t quad, quad_end;
  int64_t tile_begin, tile_end;
};

template <class F>
void decode_chunk(const Job& job, const PanelBlock& block, Chunk chunk, float* panel) {
  using Element = typename F::Element;
  for (int64_t q = block.quad; q < block.quad_end; ++q, panel += kPieceSteps * 4 * kStep) {
    for (int r = 0; r < 4; ++r) {
      const Element* w = static_cast<const Element*>(job.weight->codes) +
                         block.rows->readable(q, r) * job.weight->row_stride;
      float* out = panel + r * kStep;
      for (int64_t i = chunk.begin; i < chunk.end; ++i) {
        decode_row<F>(w + job.pieces[i].k, job.pieces[i], out);
        out += job.pieces[i].steps * 4 * kStep;
      }
    }
  }
}

// All tiles of the block with the decoded chunk of one quad.
inline void multiply_chunk(const Job& job, const PanelBlock& block, Chunk chunk, int64_t quad,
                           const float* panel, Sums sums) {
  const Tiles tiles(job.plan->m);
  const QuadScales scales(job, *block.rows, quad);
  for (int64_t i = block.tile_begin; i < block.tile_end; ++i) {
    const int64_t token = tiles.first(i), size = tiles.size(i);
    const float* x = job.x + token * job.plan->count.steps * kStep;
    const float* w = panel;
    for (int64_t p = chunk.begin; p < chunk.end; ++p) {
      const Piece& piece = job.pieces[p];
      const float* x_piece = x + piece.x_step * size * kStep;
      if (size == 3) {
        tile<3>(job, piece, scales, w, x_piece, token, sums);
      } else {
        tile<2>(job, piece, scales, w, x_piece, token, sums);
      }
      w += piece.steps * 4 * kStep;
    }
    sums.lanes += size * 32;
    sums.totals += size * 32;
  }
}

template <class F>
void panel_block(const Job& job, const PanelBlock& block, const Workspace& work) {
  const Tiles tiles(job.plan->m);
  const int64_t tokens = tiles.first(block.tile_end) - tiles.first(block.tile_begin);
  for (int64_t p = 0; p < job.plan->count.pieces;) {
    const Chunk chunk = next_chunk(job, p);
    decode_chunk<F>(job, block, chunk, work.panel);
    for (int64_t q = block.quad; q < block.quad_end; ++q) {
      const int64_t i = q - block.quad;
      multiply_chunk(job, block, chunk, q, work.panel + i * kPieceSteps * 4 * kStep,
                     {work.lanes + i * tokens * 32, work.totals + i * tokens * 32});
    }
    p = chunk.end;
  }
  const float* total = work.totals;
  for (int64_t q = block.quad; q < block.quad_end; ++q) {
    for (int64_t m = tiles.first(block.tile_begin); m < tiles.first(block.tile_end); ++m) {
      const __m256 sums[4] = {_mm256_loadu_ps(total), _mm256_loadu_ps(total + 8),
                              _mm256_loadu_ps(total + 16), _mm256_loadu_ps(total + 24)};
      write_y(job, *block.rows, q, m, sums);
      total += 32;
    }
  }
}

template <class F>
void panels(const Job& job, int64_t begin, int64_t end, const Workspace& work) {
  const Plan& plan = *job.plan;
  const Rows rows = plan.panel_rows == 4 ? Rows::far(begin, end) : Rows::near(begin, end);
  const int64_t quads = plan.panel_rows / 4;
  const int64_t block_tiles = Plan::kBlockTokens / 3;
  const Tiles tiles(plan.m);
  for (int64_t t = 0; t < tiles.count; t += block_tiles) {
    const int64_t tile_end = t + block_tiles < tiles.count ? t + block_tiles : tiles.count;
    for (int64_t q = 0; q < rows.quads; q += quads) {
      const int64_t quad_end = q + quads < rows.quads ? q + quads : rows.quads;
      panel_block<F>(job, {&rows, q, quad_end, t, tile_end}, work);
    }
  }
}

OCTET_ISA_END

}  // namespace octet::avx2
