// Elements of a tensor in any of the types that Octet stores: OCTET_BF16, OCTET_F16, OCTET_E4M3 or
// OCTET_E5M2 is defined, or none for float32. Needs numbers.cl and, for whole lanes, lanes.cl.

#if defined(OCTET_BF16)
typedef ushort Element;
inline float widen(Element v) { return as_float((uint)v << 16); }
inline void store_element(float v, __global Element* p, size_t i) { p[i] = float_to_bf16(v); }
#elif defined(OCTET_F16)
typedef half Element;
inline void store_element(float v, __global Element* p, size_t i) { vstore_half_rte(v, i, p); }
#elif defined(OCTET_E4M3)
typedef uchar Element;
inline float widen(Element v) { return e4m3_to_float(v); }
inline void store_element(float v, __global Element* p, size_t i) { p[i] = float_to_e4m3(v); }
#elif defined(OCTET_E5M2)
typedef uchar Element;
inline float widen(Element v) { return e5m2_to_float(v); }
inline void store_element(float v, __global Element* p, size_t i) { p[i] = float_to_e5m2(v); }
#else
typedef float Element;
inline float widen(Element v) { return v; }
inline void store_element(float v, __global Element* p, size_t i) { p[i] = v; }
#endif

inline float load_element(__global const Element* p, size_t i) {
#ifdef OCTET_F16
  return vload_half(i, p);
#else
  return widen(p[i]);
#endif
}

#ifdef OCTET_LANES
// 16 neighbours, one a lane.
inline LvF load_lanes(__global const Element* p) {
#if defined(LV_SINGLE)
  return load_element(p, LV_LANE);
#elif defined(OCTET_BF16)
  return as_float16(convert_uint16(vload16(0, p)) << 16);
#elif defined(OCTET_F16)
  return vload_half16(0, p);
#elif defined(OCTET_E4M3)
  const uint16 code = convert_uint16(vload16(0, p));
  const uint16 sign = (code & (uint16)(0x80u)) << 24;
  const uint16 bits = (code & (uint16)(0x7Fu)) << 20;
  return select(as_float16(sign | bits) * 0x1p120f, (float16)(NAN), bits == (uint16)(0x7F00000u));
#elif defined(OCTET_E5M2)
  const uint16 code = convert_uint16(vload16(0, p));
  const uint16 sign = (code & (uint16)(0x80u)) << 24;
  const uint16 bits = (code & (uint16)(0x7Fu)) << 21;
  return select(as_float16(sign | bits) * 0x1p112f, as_float16(sign | bits | (uint16)(0x7F800000u)),
                bits >= (uint16)(0x0F800000u));
#else
  return vload16(0, p);
#endif
}

// The first n of them; the other lanes get zero.
inline LvF load_lanes_n(__global const Element* p, int n) {
#ifdef LV_SINGLE
  return LV_LANE < n ? load_element(p, LV_LANE) : 0.0f;
#else
  if (n >= 16) return load_lanes(p);
  float t[16];
  for (int i = 0; i < 16; ++i) t[i] = i < n ? load_element(p, i) : 0.0f;
  return vload16(0, t);
#endif
}
#endif
