// The built-ins of cl_intel_subgroup_matrix_multiply_accumulate that Octet uses, by shuffles of a
// subgroup, for runtimes that have none. Operands as the extension's specification has them:
// element m of x in lane l is x[m][l] (16 columns), or x[m][2l] with x[m][2l + 1] in the upper half
// (8 columns); word i of w is w[2i] with w[2i + 1] above it, of the lane's column.
//
// This proves layouts and index arithmetic, not the hardware: its order of sums is its own.
#pragma OPENCL EXTENSION cl_intel_subgroups : enable

inline float emulated_bf16(uint bits) { return as_float(bits << 16); }

// One row of x: `part` is the lane's element. Rolled loops compile in a tenth of the time.
#if OCTET_DPAS == 16
#define EMULATED_PART short
inline float emulated_row(short part, const int* w, float sum) {
  __attribute__((opencl_unroll_hint(1))) for (int i = 0; i < 8; ++i) {
    const float low = emulated_bf16((ushort)intel_sub_group_shuffle((int)part, (uint)(2 * i)));
    const float high = emulated_bf16((ushort)intel_sub_group_shuffle((int)part, (uint)(2 * i + 1)));
    sum = fma(low, emulated_bf16(as_uint(w[i]) & 0xFFFFu), sum);
    sum = fma(high, emulated_bf16(as_uint(w[i]) >> 16), sum);
  }
  return sum;
}
#else
#define EMULATED_PART int
inline float emulated_row(int part, const int* w, float sum) {
  __attribute__((opencl_unroll_hint(1))) for (int i = 0; i < 8; ++i) {
    const uint both = as_uint(intel_sub_group_shuffle(part, (uint)i));
    sum = fma(emulated_bf16(both & 0xFFFFu), emulated_bf16(as_uint(w[i]) & 0xFFFFu), sum);
    sum = fma(emulated_bf16(both >> 16), emulated_bf16(as_uint(w[i]) >> 16), sum);
  }
  return sum;
}
#endif

#define EMULATED_TYPE_(type, n) type##n
#define EMULATED_TYPE(type, n) EMULATED_TYPE_(type, n)
#define EMULATE(n)                                                                        \
  __attribute__((overloadable)) float##n intel_sub_group_bf16_bf16_matrix_mad_k16(        \
      EMULATED_TYPE(EMULATED_PART, n) x, int8 w, float##n sums) {                         \
    EMULATED_PART parts[n];                                                               \
    float values[n];                                                                      \
    int words[8];                                                                         \
    vstore##n(x, 0, parts);                                                               \
    vstore##n(sums, 0, values);                                                           \
    vstore8(w, 0, words);                                                                 \
    __attribute__((opencl_unroll_hint(1))) for (int m = 0; m < n; ++m) values[m] =        \
        emulated_row(parts[m], words, values[m]);                                         \
    return vload##n(0, values);                                                           \
  }
EMULATE(2)
EMULATE(4)
EMULATE(8)
__attribute__((overloadable)) float intel_sub_group_bf16_bf16_matrix_mad_k16(EMULATED_PART x, int8 w,
                                                                             float sum) {
  int words[8];
  vstore8(w, 0, words);
  return emulated_row(x, words, sum);
}
