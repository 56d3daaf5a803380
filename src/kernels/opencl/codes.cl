// 8-bit weights in panels: their words as floats, and the scales of a panel. Needs lanes.cl.
//
// A word holds codes k+2, k, k+3, k+1 of one column, lowest byte first, zero outside [N,K].

// Where the scales of a panel's columns (from n on, one a lane) lie: offsets of their rows in a grid
// of `cols` columns; `tile` 0: one row of scales for all. Found once, since it takes divisions.
#ifdef LV_SINGLE
#ifdef OCTET_DPAS
#define LV_LANES OCTET_DPAS
#else
#define LV_LANES 16
#endif
typedef struct {
  uint of;     // this lane's
  uint first;  // of the first column
  bool same;   // for all columns
} ScaleRows;
inline ScaleRows scale_rows(int cols, int n, int size, int tile, int first) {
  ScaleRows rows = {0, 0, true};
  if (tile == 0) return rows;
  const int last = min(n + LV_LANES, size) - 1;
  rows.of = (uint)((min(n + LV_LANE, last) + first) / tile) * cols;
  rows.first = (uint)((n + first) / tile) * cols;
  rows.same = rows.first == (uint)((last + first) / tile) * cols;
  return rows;
}
inline LvF scales_at(__global const float* scales, ScaleRows rows, int col) {
  if (rows.same) return scales[rows.first + col];
  return scales[rows.of + col];
}
#else
typedef struct {
  size_t of[16];
  bool same;
} ScaleRows;
inline ScaleRows scale_rows(int cols, int n, int size, int tile, int first) {
  ScaleRows rows;
  for (int i = 0; i < 16; ++i)
    rows.of[i] = tile == 0 ? 0 : (size_t)((min(n + i, size - 1) + first) / tile) * cols;
  rows.same = rows.of[0] == rows.of[15];
  return rows;
}
inline LvF scales_at(__global const float* scales, ScaleRows rows, int col) {
  if (rows.same) return (LvF)(scales[rows.of[0] + col]);
  float t[16];
  for (int i = 0; i < 16; ++i) t[i] = scales[rows.of[i] + col];
  return vload16(0, t);
}
#endif

// Four codes of every column as floats. A code at the top of a word is shifted down with its sign;
// the bits between sign and magnitude are cleared. E4M3: so the bits below the sign stand at the
// bottom of the exponent, which makes even subnormal codes right once 2^120 is multiplied in. Its NaN
// codes become 480 there and are seen apart: their top bit of NAN_BITS is set. E5M2 is the upper half
// of binary16.
#define CODE_K0(w) WIDEN(LV_AS_I((w) << 16))
#define CODE_K1(w) WIDEN(LV_AS_I(w))
#define CODE_K2(w) WIDEN(LV_AS_I((w) << 24))
#define CODE_K3(w) WIDEN(LV_AS_I((w) << 8))
#ifdef OCTET_E5M2
#define BITS(top) (LV_AS_UI((top) >> 3) & (LvU)(0x8FE00000u))
#define WIDEN(top)                                                                        \
  LV_SELECT(LV_AS_F(BITS(top)) * 0x1p112f, LV_AS_F(BITS(top) | (LvU)(0x7F800000u)),       \
            (BITS(top) & (LvU)(0x0F800000u)) == (LvU)(0x0F800000u))
#define NAN_BITS(w) (LvU)(0u)
#else
#define WIDEN(top) (LV_AS_F(LV_AS_UI((top) >> 4) & (LvU)(0x87F00000u)) * 0x1p120f)
#define NAN_BITS(w) (((w) & (LvU)(0x7F7F7F7Fu)) + (LvU)(0x01010101u))
#endif
