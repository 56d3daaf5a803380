#pragma once
// Many tokens: rows are decoded chunk by chunk to a panel of floats, and each panel meets every
// tile of tokens. A tile is 4 rows x 3 tokens with 8 partial sums along K each, the dot form: lanes
// and order of the sums are those of the stream form, so a row of y does not depend on how many
// tokens there are.
#include "kernels/cpu/linear_job_avx2.h"

namespace octet::avx2 {

OCTET_ISA_BEGIN("avx2,fma,f16c")

// Replaces the elements of a decoded row that come from NaN codes; its steps are `stride` apart.
inline void plant_nan(const uint8_t* codes, int64_t length, float* row, int64_t stride) {
  for (int64_t i = 0; i < length; ++i) {
    if (is_e4m3_nan(codes[i])) {
      row[i / kStep * stride + paired_position(i % kStep)] = __builtin_nanf("");
    }
  }
}

OCTET_ALWAYS_INLINE void store_step(float* to, const Step& step) {
  OCTET_UNROLL
  for (int j = 0; j < 4; ++j) _mm256_storeu_ps(to + 8 * j, step.v[j]);
}

// Decodes one row of a piece to panel[step][4 rows][32], at the row's place.
template <class F>
void decode_row(const typename F::Element* w, const Piece& piece, float* panel_row) {
  constexpr int64_t kStride = 4 * kStep;
  Watch watch{_mm256_setzero_si256()};
  float* out = panel_row;
  for (int64_t k = 0; k < piece.whole; k += kStep, out += kStride) {
    store_step(out, F::decode(w + k, watch));
  }
  if (piece.rest != 0) store_step(out, decode_part<F>(w + piece.whole, piece.rest, watch));
  if constexpr (F::kWatched) {
    if (watch.saw_e4m3_nan()) plant_nan(w, piece.length, panel_row, kStride);
  }
}

// Where one tile keeps its sums between pieces: [token][4 rows][8] floats each; the two may be one.
struct Sums {
  float* lanes;
  float* totals;
};

// Adds the segment that ended to the totals of T tokens x 4 rows.
template <int T>
OCTET_ALWAYS_INLINE void add_to_totals(const Piece& piece, const GroupScales<4>& scales,
                                       const __m256 lanes[T][4], float* totals) {
  OCTET_UNROLL
  for (int r = 0; r < 4; ++r) {
    const __m256 scale = _mm256_set1_ps(scales.row[r][piece.weight_col]);
    OCTET_UNROLL
    for (int t = 0; t < T; ++t) {
      float* total = totals + (t * 4 + r) * 8;
      const __m256 before = piece.weight_col == 0 ? _mm256_setzero_ps() : _mm256_loadu_ps(total);
      _mm256_storeu_ps(total, _mm256_fmadd_ps(lanes[t][r], scale, before));
    }
  }
}

// Adds one piece to the sums of T tokens x 4 rows, and its segment to the totals when it ends.
template <int T>
void multiply_piece(const Piece& piece, const GroupScales<4>& scales, const float* panel,
                    const float* x, Sums sums) {
  __m256 lanes[T][4];
  OCTET_UNROLL
  for (int t = 0; t < T; ++t) {
    OCTET_UNROLL
    for (int r = 0; r < 4; ++r) lanes[t][r] = _mm256_setzero_ps();
  }
  if (!piece.begins) {
    OCTET_UNROLL
    for (int t = 0; t < T; ++t) {
      OCTET_UNROLL
      for (int r = 0; r < 4; ++r) lanes[t][r] = _mm256_loadu_ps(sums.lanes + (t * 4 + r) * 8);
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
  if (piece.ends) {
    add_to_totals<T>(piece, scales, lanes, sums.totals);
    return;
  }
  OCTET_UNROLL
  for (int t = 0; t < T; ++t) {
    OCTET_UNROLL
    for (int r = 0; r < 4; ++r) _mm256_storeu_ps(sums.lanes + (t * 4 + r) * 8, lanes[t][r]);
  }
}

// A thread's part of the scratch.
struct Workspace {
  float* panel;   // [groups of a panel][kChunkSteps][4 rows][32]
  float* lanes;   // [groups of a panel][tokens of a block][4 rows][8]
  float* totals;  // the same; equal to `lanes` where one will do
};

// Groups [group, group_end) of four rows for the tokens of tiles [tile, tile_end).
struct Block {
  const Rows* rows;
  int64_t group, group_end;
  int64_t tile, tile_end;
};

template <class F>
void decode_chunk(const Job& job, const Block& block, const Chunk& chunk, float* panel) {
  using Element = typename F::Element;
  for (int64_t g = block.group; g < block.group_end; ++g, panel += kChunkSteps * 4 * kStep) {
    for (int r = 0; r < 4; ++r) {
      const Element* w = static_cast<const Element*>(job.weight->codes) +
                         block.rows->readable(g, r) * job.weight->row_stride;
      float* row = panel + r * kStep;
      for (int64_t i = chunk.piece_begin; i < chunk.piece_end; ++i) {
        decode_row<F>(w + job.pieces[i].k, job.pieces[i], row);
        row += job.pieces[i].steps * 4 * kStep;
      }
    }
  }
}

// All pieces of a chunk for one tile.
template <int T>
OCTET_ALWAYS_INLINE void multiply_tile(const Job& job, const Chunk& chunk,
                                       const GroupScales<4>& scales, const float* panel,
                                       int64_t token, Sums sums) {
  const float* x = job.x_of(chunk, token, T);
  for (int64_t i = chunk.piece_begin; i < chunk.piece_end; ++i) {
    const Piece& piece = job.pieces[i];
    multiply_piece<T>(piece, scales, panel, x, sums);
    panel += piece.steps * 4 * kStep;
    x += piece.steps * T * kStep;
  }
}

// Fetches what the four rows of a group have of a chunk, to L2: L1 has too few ways for rows that
// are a power of two apart.
template <class F>
void fetch_chunk(const Job& job, const Rows& rows, int64_t group, const Chunk& chunk) {
  using Element = typename F::Element;
  const Piece& first = job.pieces[chunk.piece_begin];
  const Piece& last = job.pieces[chunk.piece_end - 1];
  const auto bytes = static_cast<int64_t>(sizeof(Element)) * (last.k + last.length - first.k);
  for (int r = 0; r < 4; ++r) {
    const auto* w =
        reinterpret_cast<const char*>(static_cast<const Element*>(job.weight->codes) +
                                      rows.readable(group, r) * job.weight->row_stride + first.k);
    for (int64_t i = 0; i < bytes; i += 64) _mm_prefetch(w + i, _MM_HINT_T1);
  }
}

// All tiles of the block with the decoded chunk of one group.
inline void multiply_chunk(const Job& job, const Block& block, const Chunk& chunk, int64_t group,
                           const float* panel, Sums sums) {
  const Tiles& tiles = job.plan->tiles;
  const GroupScales<4> scales(job, *block.rows, group);
  for (int64_t i = block.tile; i < block.tile_end; ++i) {
    const int64_t token = tiles.first(i), size = tiles.size(i);
    if (size == 3) {
      multiply_tile<3>(job, chunk, scales, panel, token, sums);
    } else {
      multiply_tile<2>(job, chunk, scales, panel, token, sums);
    }
    sums.lanes += size * 32;
    sums.totals += size * 32;
  }
}

// y of a block from its totals.
inline void write_block(const Job& job, const Block& block, const float* totals) {
  const Tiles& tiles = job.plan->tiles;
  for (int64_t g = block.group; g < block.group_end; ++g) {
    const int64_t n = block.rows->row(g, 0);
    const int64_t rows[4] = {n, n + 1, n + 2, n + 3};
    const int64_t left = block.rows->end - n;
    for (int64_t m = tiles.first(block.tile); m < tiles.first(block.tile_end); ++m, totals += 32) {
      const __m128 sums = sum_lanes(_mm256_loadu_ps(totals), _mm256_loadu_ps(totals + 8),
                                    _mm256_loadu_ps(totals + 16), _mm256_loadu_ps(totals + 24));
      if (left >= 4) {
        write_four(job, m, n, sums);
      } else {
        write_y(job, m, rows, static_cast<int>(left), sums);
      }
    }
  }
}

template <class F>
void multiply_block(const Job& job, const Block& block, const Workspace& work) {
  const Tiles& tiles = job.plan->tiles;
  const int64_t tokens = tiles.first(block.tile_end) - tiles.first(block.tile);
  const int64_t chunks = job.plan->k.chunks;
  for (int64_t c = 0; c < chunks; ++c) {
    decode_chunk<F>(job, block, job.chunks[c], work.panel);
    for (int64_t g = block.group; g < block.group_end; ++g) {
      const int64_t i = g - block.group;
      // What is decoded next comes while this is multiplied.
      if (c + 1 < chunks) {
        fetch_chunk<F>(job, *block.rows, g, job.chunks[c + 1]);
      } else if (block.group_end + i < block.rows->groups) {
        fetch_chunk<F>(job, *block.rows, block.group_end + i, job.chunks[0]);
      }
      multiply_chunk(job, block, job.chunks[c], g, work.panel + i * kChunkSteps * 4 * kStep,
                     {work.lanes + i * tokens * 32, work.totals + i * tokens * 32});
    }
  }
  write_block(job, block, work.totals);
}

// Rows [begin, end) for all tokens.
template <class F>
void panel_rows(const Job& job, int64_t begin, int64_t end, const Workspace& work) {
  constexpr int64_t kGroups = Plan::kPanelRows / 4, kTiles = Plan::kBlockTokens / 3;
  const Rows rows = Rows::near(begin, end, 4);
  const int64_t tiles = job.plan->tiles.count;
  for (int64_t t = 0; t < tiles; t += kTiles) {
    const int64_t tile_end = t + kTiles < tiles ? t + kTiles : tiles;
    for (int64_t g = 0; g < rows.groups; g += kGroups) {
      const int64_t group_end = g + kGroups < rows.groups ? g + kGroups : rows.groups;
      multiply_block<F>(job, {&rows, g, group_end, t, tile_end}, work);
    }
  }
}

OCTET_ISA_END

}  // namespace octet::avx2
