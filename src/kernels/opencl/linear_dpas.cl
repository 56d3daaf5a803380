// y[M,N] = x[M,K] * W[N,K]^T + bias with 8-bit weights on Intel's matrix engine. OCTET_DPAS is its
// number of columns, which is the size of a subgroup.
//
// W lies in panels of that many columns (codes.cl): [ceil(N/columns)][ceil(K/4)][columns] words. x is
// bfloat16, or codes with scales (OCTET_X_E4M3, OCTET_X_E5M2). The engine multiplies bfloat16, which
// holds every 8-bit code exactly and as a normal number, and adds in float32, 16 elements of K at a
// time. K is cut where a scale changes: scales are applied to sums. A subgroup takes one panel and
// ROWS rows of x, in tiles of up to 8; the order of sums depends on K and the scales alone.
//
// Cost for one row: N*K bytes of codes, 4 per code segment of scales, 2 K (1 K) of x from the cache.
// About 7 operations to decode a code, once for all ROWS rows: 2 ROWS / 7 multiply-adds an operation.

#define COLUMNS OCTET_DPAS

#if ROWS >= 8
#define TILE 8
#define TILES (ROWS / 8)
#define VECTOR(type, f) ((type)(f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)))
#define EACH(f, v) \
  f(v.s0, 0) f(v.s1, 1) f(v.s2, 2) f(v.s3, 3) f(v.s4, 4) f(v.s5, 5) f(v.s6, 6) f(v.s7, 7)
typedef float8 Sums;
typedef short8 Tile16;
typedef int8 Tile8;
#elif ROWS == 4
#define TILE 4
#define TILES 1
#define VECTOR(type, f) ((type)(f(0), f(1), f(2), f(3)))
#define EACH(f, v) f(v.s0, 0) f(v.s1, 1) f(v.s2, 2) f(v.s3, 3)
typedef float4 Sums;
typedef short4 Tile16;
typedef int4 Tile8;
#elif ROWS == 2
#define TILE 2
#define TILES 1
#define VECTOR(type, f) ((type)(f(0), f(1)))
#define EACH(f, v) f(v.s0, 0) f(v.s1, 1)
typedef float2 Sums;
typedef short2 Tile16;
typedef int2 Tile8;
#else
#define TILE 1
#define TILES 1
#define VECTOR(type, f) (f(0))
#define EACH(f, v) f(v, 0)
typedef float Sums;
typedef short Tile16;
typedef int Tile8;
#endif

// Element m of a tile of x: x[m][k + lane] of 16 lanes; x[m][k + 2 lane] and its right neighbour, in
// the upper half, of 8.
#if COLUMNS == 16
typedef Tile16 Tile;
typedef short TilePart;
#else
typedef Tile8 Tile;
typedef int TilePart;
#endif

// cl_intel_subgroup_matrix_multiply_accumulate; compilers that do not declare it have it too.
__attribute__((overloadable)) Sums intel_sub_group_bf16_bf16_matrix_mad_k16(Tile x, int8 w,
                                                                            Sums sums);

// A code of x as bfloat16.
#if defined(OCTET_X_E4M3)
typedef uchar XElement;
inline uint x_bits(uint code) {
  const uint magnitude = code & 0x7Fu;
  const uint value = as_uint(as_float((code & 0x80u) << 24 | magnitude << 20) * 0x1p120f);
  return magnitude == 0x7Fu ? 0x7FC0u : value >> 16;
}
#define OCTET_X_CODES
#elif defined(OCTET_X_E5M2)
typedef uchar XElement;
inline uint x_bits(uint code) {
  const uint bits = (code & 0x80u) << 24 | (code & 0x7Fu) << 21;
  const uint value = as_uint(as_float(bits) * 0x1p112f);
  return ((code & 0x7Fu) >= 0x7Cu ? bits | 0x7F800000u : value) >> 16;
}
#define OCTET_X_CODES
#else
typedef ushort XElement;
#define x_bits(element) ((uint)(element))
#endif

// What a lane holds of a row of x for the 16 elements at k; those outside [begin, end) are zero and
// not read.
inline TilePart x_part(__global const XElement* row, int k, int begin, int end) {
#if COLUMNS == 16
  const int i = k + LV_LANE;
  return (short)(ushort)(i >= begin && i < end ? x_bits(row[i]) : 0u);
#else
  const int i = k + 2 * LV_LANE;
  const uint low = i >= begin && i < end ? x_bits(row[i]) : 0u;
  const uint high = i + 1 >= begin && i + 1 < end ? x_bits(row[i + 1]) : 0u;
  return as_int(low | high << 16);
#endif
}

// Two neighbours of a column as bfloat16, which both are exactly.
inline uint pair(float low, float high) { return as_uint(low) >> 16 | (as_uint(high) & 0xFFFF0000u); }

// The same with zero for elements outside [begin, end).
inline uint kept(uint pair, int k, int begin, int end) {
  return pair & ((k >= begin && k < end ? 0x0000FFFFu : 0u) |
                 (k + 1 >= begin && k + 1 < end ? 0xFFFF0000u : 0u));
}

inline uint low_pair(uint word) { return pair(CODE_K0(word), CODE_K1(word)); }
inline uint high_pair(uint word) { return pair(CODE_K2(word), CODE_K3(word)); }

// Adds 16 elements of K at k. WORDS gives four words of a column, W_PAIR and X_PART the operands.
#define STEP(k, WORDS, W_PAIR, X_PART)                                                     \
  do {                                                                                     \
    const uint4 words = WORDS;                                                             \
    nan_bits |= NAN_BITS(words.x) | NAN_BITS(words.y) | NAN_BITS(words.z) | NAN_BITS(words.w); \
    const int8 columns = as_int8((uint8)(                                                  \
        W_PAIR(low_pair(words.x), (k)), W_PAIR(high_pair(words.x), (k) + 2),               \
        W_PAIR(low_pair(words.y), (k) + 4), W_PAIR(high_pair(words.y), (k) + 6),           \
        W_PAIR(low_pair(words.z), (k) + 8), W_PAIR(high_pair(words.z), (k) + 10),          \
        W_PAIR(low_pair(words.w), (k) + 12), W_PAIR(high_pair(words.w), (k) + 14)));       \
    _Pragma("unroll") for (int t = 0; t < TILES; ++t) {                                    \
      const Tile rows_of_x = VECTOR(Tile, X_PART);                                    \
      sums[t] = intel_sub_group_bf16_bf16_matrix_mad_k16(rows_of_x, columns, sums[t]);     \
    }                                                                                      \
  } while (0)

#define ROW(i) (row[t * TILE + (i)])
#define WHOLE_WORDS intel_sub_group_block_read4(w + (size_t)(k / 4) * COLUMNS)
#define WHOLE_PAIR(pair, k) (pair)
#define WHOLE_PART(i) x_part(ROW(i), k, k, k + 16)
#define PART_WORD(j) \
  (k / 4 + (j) < words_of_k ? intel_sub_group_block_read(w + (size_t)(k / 4 + (j)) * COLUMNS) : 0u)
#define PART_WORDS (uint4)(PART_WORD(0), PART_WORD(1), PART_WORD(2), PART_WORD(3))
#define PART_PAIR(pair, k) kept((pair), (k), begin, end)
#define PART_PART(i) x_part(ROW(i), k, begin, end)
#define X_SCALE(i) (x_scales[(size_t)min(m + t * TILE + (i), m_size - 1) * x_scale_stride + group])
#define STORE(value, i)                                                                           \
  if (m + t * TILE + (i) < m_size && n + LV_LANE < n_size)                                        \
    y[(size_t)(m + t * TILE + (i)) * y_stride + n + LV_LANE] = is_nan ? NAN : (value) + offset;

// x_group is the size of a group of x, whose first has lost x_first elements; 0: one scale a row.
__attribute__((intel_reqd_sub_group_size(COLUMNS))) __kernel void linear(
    __global const uint* w, __global const float* scales, __global const float* bias,
    __global const XElement* x, __global const float* x_scales, __global float* y, int n_size,
    int k_size, int m_size, int x_stride, int x_group, int x_first, int x_scale_stride, int y_stride,
    int scale_cols, int tile_rows, int first_row, int tile_cols, int first_col) {
  const int panel = LV_PANEL;
  const int n = panel * COLUMNS;
  const int m = (int)get_global_id(1) * ROWS;
  if (n >= n_size) return;
  const int words_of_k = (k_size + 3) / 4;
  w += (size_t)panel * words_of_k * COLUMNS;
  __global const XElement* row[ROWS];
  _Pragma("unroll") for (int r = 0; r < ROWS; ++r)
    row[r] = x + (size_t)min(m + r, m_size - 1) * x_stride;
  Sums total[TILES];
  _Pragma("unroll") for (int t = 0; t < TILES; ++t) total[t] = (Sums)(0.0f);
  uint nan_bits = 0;
  const ScaleRows rows_of_scales = scale_rows(scale_cols, n, n_size, tile_rows, first_row);
  int end = 0;
  for (int begin = 0, col = 0, group = 0; begin < k_size; begin = end) {
    const int col_end = tile_cols == 0 ? k_size : (col + 1) * tile_cols - first_col;
    const int group_end = x_group == 0 ? k_size : (group + 1) * x_group - x_first;
    end = min(k_size, min(col_end, group_end));
    Sums sums[TILES];
    _Pragma("unroll") for (int t = 0; t < TILES; ++t) sums[t] = (Sums)(0.0f);
    int k = begin & ~15;
    if (k < begin) {
      STEP(k, PART_WORDS, PART_PAIR, PART_PART);
      k += 16;
    }
    for (; k + 16 <= end; k += 16) STEP(k, WHOLE_WORDS, WHOLE_PAIR, WHOLE_PART);
    if (k < end) STEP(k, PART_WORDS, PART_PAIR, PART_PART);
    const float scale = scales_at(scales, rows_of_scales, col);
    _Pragma("unroll") for (int t = 0; t < TILES; ++t) {
#ifdef OCTET_X_CODES
      const Sums factor = VECTOR(Sums, X_SCALE) * scale;
      total[t] = fma(sums[t], factor, total[t]);
#else
      total[t] = fma(sums[t], (Sums)(scale), total[t]);
#endif
    }
    if (end == col_end) ++col;
    if (end == group_end) ++group;
  }
  const bool is_nan = (nan_bits & 0x80808080u) != 0;
  const float offset = bias == 0 || n + LV_LANE >= n_size ? 0.0f : bias[n + LV_LANE];
  _Pragma("unroll") for (int t = 0; t < TILES; ++t) { EACH(STORE, total[t]) }
}
