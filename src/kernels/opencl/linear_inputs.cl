// What linear layers need beside their sums: weights laid out in panels, and 8-bit inputs widened.

// Words of panels of `columns` columns from row-major codes, a work-item four words of a column:
// `codes` holds `rows` rows of k_size codes, the first of them of column 0 of the panel at w.
__kernel void pack_panels(__global const uchar* codes, __global uint* w, int rows, int k_size,
                          int columns) {
  const int column = (int)get_global_id(0);
  const int word = (int)get_global_id(1) * 4;
  const int panel = (int)get_global_id(2);
  const int words = (k_size + 3) / 4;
  const int count = min(4, words - word);
  const int row = panel * columns + column;
  const int k = word * 4;
  if (count <= 0) return;
  __global const uchar* place = codes + (size_t)row * k_size + k;
  w += ((size_t)panel * words + word) * columns + column;
  if (row < rows && k + 16 <= k_size) {
    const uint16 c = convert_uint16(vload16(0, place));
    const uint4 packed = c.s26ae | c.s048c << 8 | c.s37bf << 16 | c.s159d << 24;
    w[0] = packed.x;
    w[columns] = packed.y;
    w[2 * columns] = packed.z;
    w[3 * columns] = packed.w;
    return;
  }
  const int left = row < rows ? k_size - k : 0;
  for (int i = 0; i < count; ++i) {
    const uint c0 = 4 * i < left ? place[4 * i] : 0u;
    const uint c1 = 4 * i + 1 < left ? place[4 * i + 1] : 0u;
    const uint c2 = 4 * i + 2 < left ? place[4 * i + 2] : 0u;
    const uint c3 = 4 * i + 3 < left ? place[4 * i + 3] : 0u;
    w[i * columns] = c2 | c0 << 8 | c3 << 16 | c1 << 24;
  }
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
