// y[M,N] = x[M,K] * W[N,K]^T + bias with 8-bit weights of any scale geometry.
//
// W lies as x16: [ceil(N/16)][ceil(K/4)][16] words; a word holds codes k+2, k, k+3, k+1 of one
// column, lowest byte first, zero outside [N,K]. PANELS panels of 16 columns and ROWS rows of x at a
// time: processors read several places at once faster than one, and the elements of x are spread
// over the lanes once for all panels. K is cut where a scale changes; the sum of a segment is kept in
// two chains, of even and of odd k, so that the order of sums depends on K and the scales alone.
//
// Cost for one row: N*K bytes of codes, 4 per code segment of scales, 4 K of x from the cache. Per
// word 4 multiply-adds a row, and about 15 operations to decode it (E4M3).

// Four elements of a row of x; those outside [begin, end) are zero and not read.
inline float4 masked_x(__global const float* x, int k, int begin, int end) {
  return (float4)(k >= begin && k < end ? x[k] : 0.0f,
                  k + 1 >= begin && k + 1 < end ? x[k + 1] : 0.0f,
                  k + 2 >= begin && k + 2 < end ? x[k + 2] : 0.0f,
                  k + 3 >= begin && k + 3 < end ? x[k + 3] : 0.0f);
}

// Takes word k / 4 of every panel into the chains; X gives four elements of row r of x.
#define STEP(k, X)                                                            \
  do {                                                                        \
    _Pragma("unroll") for (int p = 0; p < PANELS; ++p) {                      \
      const LvU word = lv_load_words(panel[p] + (size_t)((uint)(k) / 4) * 16); \
      nan_bits[p] |= NAN_BITS(word);                                          \
      const LvF k0 = CODE_K0(word), k1 = CODE_K1(word);                       \
      const LvF k2 = CODE_K2(word), k3 = CODE_K3(word);                       \
      _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {                      \
        const float4 v = X;                                                   \
        even[p][r] = fma(k0, (LvF)(v.x), even[p][r]);                         \
        odd[p][r] = fma(k1, (LvF)(v.y), odd[p][r]);                           \
        even[p][r] = fma(k2, (LvF)(v.z), even[p][r]);                         \
        odd[p][r] = fma(k3, (LvF)(v.w), odd[p][r]);                           \
      }                                                                       \
    }                                                                         \
  } while (0)

#define EACH_PANEL _Pragma("unroll") for (int p = 0; p < PANELS; ++p)
#define EACH_ROW _Pragma("unroll") for (int r = 0; r < ROWS; ++r)

LV_KERNEL __kernel void linear(__global const uint* w, __global const float* scales,
                               __global const float* bias, __global const float* x,
                               __global float* y, int n_size, int k_size, int m_size, int x_stride,
                               int y_stride, int scale_cols, int tile_rows, int first_row,
                               int tile_cols, int first_col) {
  const int first_panel = LV_PANEL * PANELS;
  const int m = (int)get_global_id(1) * ROWS;
  if (first_panel * 16 >= n_size) return;
  __global const uint* panel[PANELS];
  int n[PANELS];
  LvU nan_bits[PANELS];
  ScaleRows scale_row[PANELS];
  __global const float* row[ROWS];
  LvF total[PANELS][ROWS];
  EACH_ROW row[r] = x + (size_t)min(m + r, m_size - 1) * x_stride;
  EACH_PANEL {
    // Past the end the last panel is computed again and not stored.
    n[p] = min(first_panel + p, (n_size - 1) / 16) * 16;
    panel[p] = w + (size_t)n[p] * ((k_size + 3) / 4);
    nan_bits[p] = (LvU)(0u);
    scale_row[p] = scale_rows(scale_cols, n[p], n_size, tile_rows, first_row);
    EACH_ROW total[p][r] = (LvF)(0.0f);
  }
  int end = 0;
  for (int begin = 0, col = 0; begin < k_size; begin = end, ++col) {
    end = tile_cols == 0 ? k_size : min(k_size, (col + 1) * tile_cols - first_col);
    LvF even[PANELS][ROWS], odd[PANELS][ROWS];
    EACH_PANEL EACH_ROW even[p][r] = odd[p][r] = (LvF)(0.0f);
    int k = (begin + 3) & ~3;
    const int tail = end & ~3;
    if (begin < k) STEP(begin, masked_x(row[r], begin & ~3, begin, min(k, end)));
    for (; k < tail; k += 4) STEP(k, vload4(0, row[r] + k));
    if (k == tail && tail < end) STEP(tail, masked_x(row[r], tail, tail, end));
    EACH_PANEL {
      const LvF scale = scales_at(scales, scale_row[p], col);
      EACH_ROW total[p][r] = fma(even[p][r] + odd[p][r], scale, total[p][r]);
    }
  }
  EACH_PANEL {
    if ((first_panel + p) * 16 >= n_size) continue;
    const int width = min(16, n_size - n[p]);
    const LvF offset = bias == 0 ? (LvF)(0.0f) : lv_load_n(bias + n[p], width);
    EACH_ROW {
      if (m + r >= m_size) continue;
      const LvF sum = LV_SELECT(total[p][r] + offset, (LvF)(NAN),
                                (nan_bits[p] & (LvU)(0x80808080u)) != (LvU)(0u));
      lv_store_n(sum, y + (size_t)(m + r) * y_stride + n[p], width);
    }
  }
}
