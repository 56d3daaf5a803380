// Lane vectors: 16 lanes that do the same, in three ways from one source. Plain: a work-item holds
// all 16 as a vector. Narrow: the plain family where a work-item is a lane of the hardware, as on
// GPUs; a work-group of 16 holds one each, and they tell each other through local memory. Subgroup
// (Intel): 16 work-items of a subgroup hold one each.
//
// A kernel in this style is started with 1 or 16 work-items per panel of 16 lanes and finds its
// panel by LV_PANEL. Everything that is not a lane vector is the same in all lanes. What takes an
// LvShared is reached by all lanes of a panel or by none; LV_SHARED makes one in a kernel.

#define OCTET_LANES

#if defined(OCTET_SUBGROUP) || defined(OCTET_NARROW)
#define LV_SINGLE
typedef float LvF;
typedef uint LvU;
#define LV_AS_F(u) as_float(u)
#define LV_AS_U(f) as_uint(f)
#define LV_AS_I(u) as_int(u)
#define LV_AS_UI(i) as_uint(i)
#define LV_SELECT(no, yes, when) ((when) ? (yes) : (no))
#define LV_SELECT_U(no, yes, when) ((when) ? (yes) : (no))
// What another lane wrote to global memory can be read after LV_SYNC, in a work-group of one panel.
#define LV_SYNC barrier(CLK_GLOBAL_MEM_FENCE)
// Loops over single things that lanes share: from LV_FIRST in steps of LV_STEP.
#define LV_FIRST LV_LANE
#define LV_STEP 16
#endif

#ifdef OCTET_SUBGROUP
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
#define LV_KERNEL __attribute__((intel_reqd_sub_group_size(16)))
#define LV_PANEL ((int)get_group_id(0))
#define LV_LANE ((int)get_sub_group_local_id())
typedef int LvShared;
#define LV_SHARED(name) const LvShared name = 0
inline LvU lv_load_words(__global const uint* p) { return intel_sub_group_block_read(p); }
#define LV_GET(v, lane, shared) sub_group_broadcast((v), (lane))
inline float lv_max(LvF v, LvShared shared) {
  v = fmax(v, intel_sub_group_shuffle_xor(v, 8u));
  v = fmax(v, intel_sub_group_shuffle_xor(v, 4u));
  v = fmax(v, intel_sub_group_shuffle_xor(v, 2u));
  return fmax(v, intel_sub_group_shuffle_xor(v, 1u));
}
// The sum of all lanes, in every lane: a tree of halves.
inline float lv_sum(LvF v, LvShared shared) {
  v += intel_sub_group_shuffle_xor(v, 8u);
  v += intel_sub_group_shuffle_xor(v, 4u);
  v += intel_sub_group_shuffle_xor(v, 2u);
  return v + intel_sub_group_shuffle_xor(v, 1u);
}
#endif

#ifndef OCTET_SUBGROUP
inline float max_of_16(float16 v) {
  const float8 a = fmax(v.lo, v.hi);
  const float4 b = fmax(a.lo, a.hi);
  const float2 c = fmax(b.lo, b.hi);
  return fmax(c.x, c.y);
}
inline float sum_of_16(float16 v) {
  const float8 a = v.lo + v.hi;
  const float4 b = a.lo + a.hi;
  const float2 c = b.lo + b.hi;
  return c.x + c.y;
}
#endif

#ifdef OCTET_NARROW
// Intel's compiler would take vectors of 32 lanes, of which a work-group fills half.
#ifdef cl_intel_required_subgroup_size
#define LV_KERNEL __attribute__((reqd_work_group_size(16, 1, 1), intel_reqd_sub_group_size(16)))
#else
#define LV_KERNEL __attribute__((reqd_work_group_size(16, 1, 1)))
#endif
#define LV_PANEL ((int)get_group_id(0))
#define LV_LANE ((int)get_local_id(0))
typedef __local float* LvShared;
#define LV_SHARED(name) __local float name[16]
inline LvU lv_load_words(__global const uint* p) { return p[LV_LANE]; }
// The values of all lanes, in every one.
inline float16 lv_all(LvF v, LvShared shared) {
  barrier(CLK_LOCAL_MEM_FENCE);
  shared[LV_LANE] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  return vload16(0, shared);
}
inline float lv_get(LvF v, int lane, LvShared shared) {
  barrier(CLK_LOCAL_MEM_FENCE);
  shared[LV_LANE] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  return shared[lane];
}
#define LV_GET(v, lane, shared) lv_get((v), (lane), (shared))
inline float lv_max(LvF v, LvShared shared) { return max_of_16(lv_all(v, shared)); }
inline float lv_sum(LvF v, LvShared shared) { return sum_of_16(lv_all(v, shared)); }
#endif

#ifdef LV_SINGLE
inline LvF lv_load(__global const float* p) { return p[LV_LANE]; }
inline LvF lv_load_n(__global const float* p, int n) { return LV_LANE < n ? p[LV_LANE] : 0.0f; }
inline void lv_store_n(LvF v, __global float* p, int n) {
  if (LV_LANE < n) p[LV_LANE] = v;
}
// Lane vectors with a value per lane that depends on its number: `t` holds 16.
#define LV_ARRAY(t) float t
#define LV_PUT(t, lane, value) t = LV_LANE == (lane) ? (value) : t
#define LV_ADD(t, lane, value) t += LV_LANE == (lane) ? (value) : 0.0f
#define LV_OF(t) (t)
#define LV_INDEX LV_LANE
#else
typedef float16 LvF;
typedef uint16 LvU;
#define LV_KERNEL
#define LV_PANEL ((int)get_global_id(0))
#define LV_AS_F(u) as_float16(u)
#define LV_AS_U(f) as_uint16(f)
#define LV_AS_I(u) as_int16(u)
#define LV_AS_UI(i) as_uint16(i)
#define LV_SELECT(no, yes, when) select((no), (LvF)(yes), (when))
#define LV_SELECT_U(no, yes, when) select((no), (LvU)(yes), (when) != (LvU)(0u))
#define LV_SYNC
#define LV_FIRST 0
#define LV_STEP 1
inline LvU lv_load_words(__global const uint* p) { return vload16(0, p); }
inline LvF lv_load(__global const float* p) { return vload16(0, p); }
inline LvF lv_load_n(__global const float* p, int n) {
  if (n >= 16) return vload16(0, p);
  float t[16];
  for (int i = 0; i < 16; ++i) t[i] = i < n ? p[i] : 0.0f;
  return vload16(0, t);
}
inline void lv_store_n(LvF v, __global float* p, int n) {
  if (n >= 16) {
    vstore16(v, 0, p);
    return;
  }
  float t[16];
  vstore16(v, 0, t);
  for (int i = 0; i < n; ++i) p[i] = t[i];
}
#define LV_ARRAY(t) float t[16]
#define LV_PUT(t, lane, value) t[lane] = (value)
#define LV_ADD(t, lane, value) t[lane] += (value)
#define LV_OF(t) vload16(0, t)
#define LV_INDEX ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
typedef int LvShared;
#define LV_SHARED(name) const LvShared name = 0
inline float lv_max(LvF v, LvShared shared) { return max_of_16(v); }
inline float lv_sum(LvF v, LvShared shared) { return sum_of_16(v); }
#endif
