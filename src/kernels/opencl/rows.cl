// Operations on rows of activations. GROUP work-items share a row where a sum or a largest value is
// wanted, else one element each.

// Elements of a row after x += delta (if given); the largest magnitude's bits, in every work-item.
inline uint add_delta(__global float* x, __global const float* delta, int width, int round,
                      __local uint* t) {
  uint top = 0;
  for (int i = (int)get_local_id(0); i < width; i += GROUP) {
    float v = x[i];
    if (delta != 0) {
      v = rounded(v + delta[i], round);
      x[i] = v;
    }
    top = max(top, as_uint(v) & 0x7FFFFFFFu);
  }
  return group_max(t, top);
}

// x += delta (if given), and the watch for values that are not finite.
__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void add_rows(__global float* x, int x_stride, __global const float* delta,
                       int delta_stride, int width, int round, __global int* not_finite,
                       int rows_per_flag, int tag) {
  __local uint t[GROUP];
  const int row = (int)get_group_id(0);
  delta += delta == 0 ? 0 : (size_t)row * delta_stride;
  const uint top = add_delta(x + (size_t)row * x_stride, delta, width, round, t);
  if (top >= 0x7F800000u && not_finite != 0 && get_local_id(0) == 0)
    atomic_min(not_finite + row / rows_per_flag, tag);
}

// The same, then out = x / sqrt(mean(x^2) + epsilon) * weight. Squares are of values scaled by a
// power of two, so that they neither overflow nor vanish; sums are pairs of floats, so that the
// factor is as a sum in double precision would have it.
// Cost: reads x, delta and weight, writes x and out; about 20 operations an element.
__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void norm(__global float* x, int x_stride, __global const float* delta, int delta_stride,
                   __global const float* weight, __global float* out, int out_stride, int width,
                   float epsilon, int round, __global int* not_finite, int rows_per_flag, int tag) {
  __local uint t[GROUP];
  __local float2 sums[GROUP];
  const int row = (int)get_group_id(0);
  const int lane = (int)get_local_id(0);
  x += (size_t)row * x_stride;
  delta += delta == 0 ? 0 : (size_t)row * delta_stride;
  const uint top = add_delta(x, delta, width, round, t);
  if (top >= 0x7F800000u && not_finite != 0 && lane == 0)
    atomic_min(not_finite + row / rows_per_flag, tag);
  const int exponent = clamp((int)(top >> 23) - 127, -60, 126);
  const float down = ldexp(1.0f, -exponent);
  float2 sum = (float2)(0.0f);
  for (int i = lane; i < width; i += GROUP) {
    const float v = x[i] * down;
    const float square = v * v;
    sum = add_pairs(sum, (float2)(square, fma(v, v, -square)));
  }
  sum = group_sum_pairs(sums, sum);
  const float size = (float)width;
  float2 mean;
  mean.x = divide(sum.x, size);
  mean.y = (fma(-mean.x, size, sum.x) + sum.y) / size;
  mean = add_pairs(mean, (float2)(ldexp(epsilon, -2 * exponent), 0.0f));
  // 1 / sqrt(mean), corrected by half of its residual.
  const float guess = 1.0f / sqrt(mean.x);
  const float root = mean.x * guess;
  const float lost = fma(mean.x, guess, -root) + mean.y * guess;
  const float residual = fma(-root, guess, 1.0f) - lost * guess;
  const float refined = fma(0.5f * guess, residual, guess);
  const float factor = isfinite(refined) ? refined : guess;
  for (int i = lane; i < width; i += GROUP) {
    const float normal = rounded(x[i] * down * factor, round);
    out[(size_t)row * out_stride + i] = rounded(normal * weight[i], round);
  }
}

// out = silu(gate) * up. Cost: two reads, one write, an exponential.
__kernel void silu_mul(__global const float* gate, __global const float* up, int stride,
                       __global float* out, int out_stride, int width, int round) {
  const int i = (int)get_global_id(0);
  const size_t row = get_global_id(1);
  if (i >= width) return;
  const float v = gate[row * stride + i];
  const float silu = rounded(v / (1.0f + exp(-v)), round);
  out[row * out_stride + i] = rounded(silu * up[row * stride + i], round);
}

// x = bf16(x).
__kernel void round_rows(__global float* x, int stride, int width) {
  const int i = (int)get_global_id(0);
  if (i >= width) return;
  __global float* place = x + get_global_id(1) * stride + i;
  *place = round_bf16(*place);
}

// out[0] = max(out[0], largest |x|) by the bits of magnitudes, which order as they do and put NaN
// above all.
__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void absmax(__global const float* x, int stride, int width, __global uint* out) {
  __local uint largest[GROUP];
  const size_t row = get_group_id(0);
  uint top = 0;
  for (int i = (int)get_local_id(0); i < width; i += GROUP)
    top = max(top, as_uint(x[row * stride + i]) & 0x7FFFFFFFu);
  top = group_max(largest, top);
  if (get_local_id(0) == 0) atomic_max(out, top);
}

// Elements [begin, end) of a row by one scale.
inline void encode(__global const float* x, __global uchar* codes, int begin, int end, int e5m2,
                   float scale) {
  for (int i = begin + (int)get_local_id(0); i < end; i += GROUP) {
    const float q = divide(x[i], scale);
    codes[i] = e5m2 ? float_to_e5m2(q) : float_to_e4m3(q);
  }
}

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void quantize_static(__global const float* x, int x_stride, int width, int e5m2,
                              __global const float* scale, __global uchar* codes) {
  const size_t row = get_group_id(0);
  encode(x + row * x_stride, codes + row * width, 0, width, e5m2, scale[0]);
}

// One tile of a row: a group of `tile` elements whose first has lost `first`, or the row (tile 0).
// With `power` scales are powers of two (MX).
__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void quantize_dynamic(__global const float* x, int x_stride, int width, int tile, int first,
                               int e5m2, int power, __global uchar* codes, __global float* scales) {
  __local uint largest[GROUP];
  const int t = (int)get_group_id(0);
  const size_t row = get_group_id(1);
  const int begin = tile == 0 ? 0 : max(0, t * tile - first);
  const int end = tile == 0 ? width : min(width, (t + 1) * tile - first);
  x += row * x_stride;
  uint top = 0;
  for (int i = begin + (int)get_local_id(0); i < end; i += GROUP)
    top = max(top, as_uint(x[i]) & 0x7FFFFFFFu);
  top = group_max(largest, top);
  float scale = divide(as_float(top), e5m2 ? 57344.0f : 448.0f);
  if (scale == 0.0f) scale = 0x1p-23f;
  if (power) {
    const int exponent = (int)((top + (1u << 21)) >> 23) - 127 - (e5m2 ? 15 : 8);
    scale = top >= 0x7F800000u ? NAN : ldexp(1.0f, clamp(exponent, -127, 127));
  }
  if (get_local_id(0) == 0) scales[row * get_num_groups(0) + t] = scale;
  encode(x, codes + row * width, begin, end, e5m2, scale);
}

__kernel void to_bf16(__global const float* x, int x_stride, int width, __global ushort* out) {
  const int i = (int)get_global_id(0);
  const size_t row = get_global_id(1);
  if (i < width) out[row * width + i] = float_to_bf16(x[row * x_stride + i]);
}
