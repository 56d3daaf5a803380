// What linear layers need beside their sums: weights laid out in panels, and 8-bit inputs widened.

// Words of panels of `columns` columns from row-major codes, a work-item a word: `codes` holds `rows`
// rows of k_size codes, the first of them of column 0 of the panel at w.
__kernel void pack_panels(__global const uchar* codes, __global uint* w, int rows, int k_size,
                          int columns) {
  const int column = (int)get_global_id(0);
  const int word = (int)get_global_id(1);
  const int panel = (int)get_global_id(2);
  const int words = (k_size + 3) / 4;
  if (word >= words) return;
  const int row = panel * columns + column;
  const int k = word * 4;
  uint4 code = (uint4)(0u);
  if (row < rows) {
    __global const uchar* place = codes + (size_t)row * k_size + k;
    code.x = place[0];
    if (k + 1 < k_size) code.y = place[1];
    if (k + 2 < k_size) code.z = place[2];
    if (k + 3 < k_size) code.w = place[3];
  }
  w[((size_t)panel * words + word) * columns + column] =
      code.z | code.x << 8 | code.w << 16 | code.y << 24;
}

// out[m, k] = decode(codes[m, k]) * scale, dense. `group` 0: `scale_stride` scales a row (one, or
// none for one scale in all); else the first group has lost `first` elements.
__kernel void widen_input(__global const uchar* codes, __global const float* scales,
                          __global float* out, int m_size, int k_size, int stride, int group,
                          int first, int scale_stride, int e5m2) {
  const int k = (int)get_global_id(0);
  const int m = (int)get_global_id(1);
  if (k >= k_size) return;
  const float scale = scales[(size_t)m * scale_stride + (group == 0 ? 0 : (k + first) / group)];
  const uint code = codes[(size_t)m * stride + k];
  out[(size_t)m * k_size + k] = (e5m2 ? e5m2_to_float(code) : e4m3_to_float(code)) * scale;
}
