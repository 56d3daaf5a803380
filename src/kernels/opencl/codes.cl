// 8-bit weights in panels: their words as floats, and the scales of a panel. Needs lanes.cl.
//
// A word holds codes k+2, k, k+3, k+1 of one column, lowest byte first, zero outside [N,K].

// Scales of the columns that begin at n (one a lane) in column `col` of the grid; `tile` 0: one row of scales for all.
inline LvF scales_of(__global const float* scales, int cols, int col, int n, int size, int tile,
                     int first) {
  if (tile == 0) return (LvF)(scales[col]);
#ifdef LV_SINGLE
  const int row = (min(n + LV_LANE, size - 1) + first) / tile;
  return scales[(size_t)row * cols + col];
#else
  const int low = (n + first) / tile;
  const int high = (min(n + 15, size - 1) + first) / tile;
  if (low == high) return (LvF)(scales[(size_t)low * cols + col]);
  float t[16];
  for (int i = 0; i < 16; ++i) {
    const int row = (min(n + i, size - 1) + first) / tile;
    t[i] = scales[(size_t)row * cols + col];
  }
  return vload16(0, t);
#endif
}

// Four codes of every column as floats. E4M3: the bits below the sign are put at the bottom of the
// exponent, which makes even subnormal codes right once 2^120 is multiplied in. Its NaN codes become
// 480 there and are seen apart: their top bit of NAN_BITS is set. E5M2 is the upper half of binary16.
#ifdef OCTET_E5M2
#define MASK (LvU)(0x0FE00000u)
#define WIDEN(sign, bits)                                                          \
  LV_SELECT(LV_AS_F((sign) | (bits)) * 0x1p112f,                                   \
            LV_AS_F((sign) | (bits) | (LvU)(0x7F800000u)), (bits) >= (LvU)(0x0F800000u))
#define CODE_K0(w) WIDEN(((w) << 16) & (LvU)(0x80000000u), ((w) << 13) & MASK)
#define CODE_K1(w) WIDEN((w) & (LvU)(0x80000000u), ((w) >> 3) & MASK)
#define CODE_K2(w) WIDEN(((w) << 24) & (LvU)(0x80000000u), ((w) << 21) & MASK)
#define CODE_K3(w) WIDEN(((w) << 8) & (LvU)(0x80000000u), ((w) << 5) & MASK)
#define NAN_BITS(w) (LvU)(0u)
#else
#define MASK (LvU)(0x07F00000u)
#define WIDEN(sign, bits) (LV_AS_F((sign) | (bits)) * 0x1p120f)
#define CODE_K0(w) WIDEN(((w) << 16) & (LvU)(0x80000000u), ((w) << 12) & MASK)
#define CODE_K1(w) WIDEN((w) & (LvU)(0x80000000u), ((w) >> 4) & MASK)
#define CODE_K2(w) WIDEN(((w) << 24) & (LvU)(0x80000000u), ((w) << 20) & MASK)
#define CODE_K3(w) WIDEN(((w) << 8) & (LvU)(0x80000000u), ((w) << 4) & MASK)
#define NAN_BITS(w) (((w) & (LvU)(0x7F7F7F7Fu)) + (LvU)(0x01010101u))
#endif
