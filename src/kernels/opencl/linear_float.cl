// y[M,N] = x[M,K] * W[N,K]^T + bias with weights that are not quantised, in the order of the
// checkpoint. One row of W and ROWS rows of x at a time; lane l sums the elements l, l + 16, ... and
// the lanes are folded by halves, so the order depends on K alone.
//
// Cost for one row: the bytes of W, 4 K of x from the cache.

LV_KERNEL __kernel void linear(__global const Element* w, __global const float* bias,
                               __global const float* x, __global float* y, int n_size, int k_size,
                               int m_size, int w_stride, int x_stride, int y_stride) {
  LV_SHARED(shared);
  const int n = LV_PANEL;
  const int m = (int)get_global_id(1) * ROWS;
  if (n >= n_size) return;
  w += (size_t)n * w_stride;
  __global const float* row[ROWS];
  LvF sum[ROWS];
  _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {
    row[r] = x + (size_t)min(m + r, m_size - 1) * x_stride;
    sum[r] = (LvF)(0.0f);
  }
  int k = 0;
  for (; k + 16 <= k_size; k += 16) {
    const LvF weights = load_lanes(w + k);
    _Pragma("unroll") for (int r = 0; r < ROWS; ++r)
      sum[r] = fma(weights, lv_load(row[r] + k), sum[r]);
  }
  if (k < k_size) {
    const LvF weights = load_lanes_n(w + k, k_size - k);
    _Pragma("unroll") for (int r = 0; r < ROWS; ++r)
      sum[r] = fma(weights, lv_load_n(row[r] + k, k_size - k), sum[r]);
  }
  const float offset = bias == 0 ? 0.0f : bias[n];
  _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {
    const float value = lv_sum(sum[r], shared) + offset;
    if (m + r < m_size) y[(size_t)(m + r) * y_stride + n] = value;
  }
}
