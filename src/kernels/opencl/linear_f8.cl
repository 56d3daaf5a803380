// y[M,N] = x[M,K] * W[N,K]^T + bias with 8-bit weights of any scale geometry.
//
// W lies as x16: [ceil(N/16)][ceil(K/4)][16] words; a word holds codes k+2, k, k+3, k+1 of one
// column, lowest byte first, zero outside [N,K]. One panel of 16 columns and ROWS rows of x at a
// time. K is cut where a scale changes; the sum of a segment is kept in two chains, of even and of
// odd k, so that the order of sums depends on K and the scales alone.
//
// Cost for one row: N*K bytes of codes, 4 per code segment of scales, 4 K of x from the cache. Per
// word 4 multiply-adds a row, and about 16 operations to decode it (E4M3).

// Four elements of a row of x; those outside [begin, end) are zero and not read.
inline float4 masked_x(__global const float* x, int k, int begin, int end) {
  return (float4)(k >= begin && k < end ? x[k] : 0.0f,
                  k + 1 >= begin && k + 1 < end ? x[k + 1] : 0.0f,
                  k + 2 >= begin && k + 2 < end ? x[k + 2] : 0.0f,
                  k + 3 >= begin && k + 3 < end ? x[k + 3] : 0.0f);
}

// Takes word k / 4 of the panel into the chains; X gives four elements of row r of x.
#define STEP(k, X)                                                      \
  do {                                                                  \
    const LvU word = lv_load_words(w + (size_t)((k) / 4) * 16);         \
    nan_bits |= NAN_BITS(word);                                         \
    const LvF k0 = CODE_K0(word), k1 = CODE_K1(word);                   \
    const LvF k2 = CODE_K2(word), k3 = CODE_K3(word);                   \
    _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {                  \
      const float4 v = X;                                               \
      even[r] = fma(k0, (LvF)(v.x), even[r]);                           \
      odd[r] = fma(k1, (LvF)(v.y), odd[r]);                             \
      even[r] = fma(k2, (LvF)(v.z), even[r]);                           \
      odd[r] = fma(k3, (LvF)(v.w), odd[r]);                             \
    }                                                                   \
  } while (0)

LV_KERNEL __kernel void linear(__global const uint* w, __global const float* scales,
                               __global const float* bias, __global const float* x,
                               __global float* y, int n_size, int k_size, int m_size, int x_stride,
                               int y_stride, int scale_cols, int tile_rows, int first_row,
                               int tile_cols, int first_col) {
  const int n = LV_PANEL * 16;
  const int m = (int)get_global_id(1) * ROWS;
  if (n >= n_size) return;
  w += (size_t)LV_PANEL * ((k_size + 3) / 4) * 16;
  __global const float* row[ROWS];
  LvF total[ROWS];
  _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {
    row[r] = x + (size_t)min(m + r, m_size - 1) * x_stride;
    total[r] = (LvF)(0.0f);
  }
  LvU nan_bits = (LvU)(0u);
  int end = 0;
  for (int begin = 0, col = 0; begin < k_size; begin = end, ++col) {
    end = tile_cols == 0 ? k_size : min(k_size, (col + 1) * tile_cols - first_col);
    LvF even[ROWS], odd[ROWS];
    _Pragma("unroll") for (int r = 0; r < ROWS; ++r) even[r] = odd[r] = (LvF)(0.0f);
    int k = (begin + 3) & ~3;
    const int tail = end & ~3;
    if (begin < k) STEP(begin, masked_x(row[r], begin & ~3, begin, min(k, end)));
    for (; k < tail; k += 4) STEP(k, vload4(0, row[r] + k));
    if (k == tail && tail < end) STEP(tail, masked_x(row[r], tail, tail, end));
    const LvF scale = scales_of(scales, scale_cols, col, n, n_size, tile_rows, first_row);
    _Pragma("unroll") for (int r = 0; r < ROWS; ++r) total[r] = fma(even[r] + odd[r], scale, total[r]);
  }
  const int width = min(16, n_size - n);
  const LvF offset = bias == 0 ? (LvF)(0.0f) : lv_load_n(bias + n, width);
  _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {
    if (m + r >= m_size) continue;
    const LvF sum = LV_SELECT(total[r] + offset, (LvF)(NAN),
                              (nan_bits & (LvU)(0x80808080u)) != (LvU)(0u));
    lv_store_n(sum, y + (size_t)(m + r) * y_stride + n, width);
  }
}
