// Conversions of single numbers, to the bit as num/bf16.h and num/f8.h define them, and a division
// that rounds as IEEE 754 does on devices whose own does not.

inline ushort float_to_bf16(float v) {
  const uint u = as_uint(v);
  if ((u & 0x7FFFFFFFu) > 0x7F800000u) return (ushort)(u >> 16 | 0x40u);
  return (ushort)((u + 0x7FFFu + (u >> 16 & 1u)) >> 16);
}

inline float round_bf16(float v) { return as_float((uint)float_to_bf16(v) << 16); }
inline float rounded(float v, int round) { return round ? round_bf16(v) : v; }

inline float e4m3_to_float(uint code) {
  const uint magnitude = code & 0x7Fu;
  const float value = as_float((code & 0x80u) << 24 | magnitude << 20) * 0x1p120f;
  return magnitude == 0x7Fu ? NAN : value;
}

inline float e5m2_to_float(uint code) {
  const uint bits = (code & 0x80u) << 24 | (code & 0x7Fu) << 21;
  return (code & 0x7Fu) >= 0x7Cu ? as_float(bits | 0x7F800000u) : as_float(bits) * 0x1p112f;
}

// Nearest, ties to even, saturating; NaN keeps its sign. `mantissa` bits are kept, the exponent's
// bias is `bias`; `largest` is the largest finite float, `least` the least normal one.
inline uchar float_to_f8(float v, int mantissa, uint bias, uint largest, uint largest_code,
                         uint nan_code, uint least, float subnormal_step) {
  const uint sign = as_uint(v) >> 24 & 0x80u;
  const uint u = as_uint(v) & 0x7FFFFFFFu;
  if (u > 0x7F800000u) return (uchar)(sign | nan_code);
  if (u >= largest) return (uchar)(sign | largest_code);
  // Adding 2^23 steps makes the last bit of a float one step: the addition rounds.
  if (u < least) {
    const float shifted = as_float(u) + subnormal_step * 0x1p23f;
    return (uchar)(sign | (as_uint(shifted) & 0xFFu));
  }
  const int drop = 23 - mantissa;
  const uint half_step = (1u << (drop - 1)) - 1u + (u >> drop & 1u);
  return (uchar)(sign | (((u + half_step) >> drop) - ((127u - bias) << mantissa)));
}

inline uchar float_to_e4m3(float v) {
  return float_to_f8(v, 3, 7u, 0x43E00000u, 0x7Eu, 0x7Fu, 0x3C800000u, 0x1p-9f);
}
inline uchar float_to_e5m2(float v) {
  return float_to_f8(v, 2, 15u, 0x47600000u, 0x7Bu, 0x7Eu, 0x38800000u, 0x1p-16f);
}

// a / b, correctly rounded; b > 0 or NaN. The quotient of the mantissas is found by division and two
// corrections with exact residuals (Markstein, "Computation of elementary functions on the IBM RISC
// System/6000 processor", 1990), then scaled. A subnormal quotient would be rounded twice: its bits
// are found in integers.
inline float divide(float a, float b) {
  if (!(fabs(a) < INFINITY) || !(b < INFINITY) || a == 0.0f || b == 0.0f) return a / b;
  int ea, eb;
  const float ma = frexp(a, &ea);
  const float mb = frexp(b, &eb);
  float r = 1.0f / mb;
  r = fma(fma(-mb, r, 1.0f), r, r);
  float q = ma * r;
  q = fma(fma(-mb, q, ma), r, q);
  q = fma(fma(-mb, q, ma), r, q);
  const int e = ea - eb;
  if (e > -124) return ldexp(q, e);
  // |a / b| < 2^-123: in units of 2^-149 it is x * 2^(e + 149) / y with 24-bit integers x and y.
  const ulong x = (ulong)(fabs(ma) * 0x1p24f);
  const ulong y = (ulong)(mb * 0x1p24f);
  const int shift = e + 149;
  if (shift < -2) return copysign(0.0f, a);
  const ulong up = shift < 0 ? x : x << shift;
  const ulong by = shift < 0 ? y << -shift : y;
  const ulong quotient = up / by;
  const ulong rest = up - quotient * by;
  const uint bits = (uint)quotient + (2 * rest > by || (2 * rest == by && (quotient & 1)) ? 1u : 0u);
  return copysign(as_float(bits), a);
}

// a + b as its nearest float and what that leaves out, exactly (Knuth, TAOCP 2, 4.2.2).
inline float2 two_sum(float a, float b) {
  const float sum = a + b;
  const float part = sum - a;
  return (float2)(sum, (a - (sum - part)) + (b - part));
}

// Two numbers kept as such pairs, added.
inline float2 add_pairs(float2 a, float2 b) {
  const float2 sum = two_sum(a.x, b.x);
  return two_sum(sum.x, sum.y + (a.y + b.y));
}
