// Operations on tensors of a stored type: table rows by index, and the cache of keys and values.

// out[i] = float(table[ids[i] - first_entry]), zero outside the table.
__kernel void gather(__global const Element* table, int stride, int first_entry, int entries,
                     __global const int* ids, __global float* out, int width) {
  const int i = (int)get_global_id(0);
  const size_t row = get_global_id(1);
  if (i >= width) return;
  const int entry = ids[row] - first_entry;
  const bool inside = entry >= 0 && entry < entries;
  out[row * width + i] = inside ? load_element(table, (size_t)entry * stride + i) : 0.0f;
}

// First element of a token's head in [blocks, kv_heads, block_size, head_dim].
inline size_t kv_offset(long slot, int head, int block_size, int kv_heads, int head_dim) {
  return (size_t)((slot / block_size * kv_heads + head) * block_size + slot % block_size) * head_dim;
}

// Work-item i of a head takes pair i of the rotation, or one of the elements behind it; heads
// [0, heads) are of q, the next kv_heads of k, the last of v.
__kernel void rope(__global float* q, int q_stride, __global const float* k, int k_stride,
                   __global const float* v, int v_stride, __global const int* positions,
                   __global const float* cos_sin, __global const long* slots,
                   __global Element* k_cache, __global Element* v_cache, int block_size, int heads,
                   int kv_heads, int head_dim, int rotary_dim, float k_scale, float v_scale,
                   int interleaved, int round) {
  const int i = (int)get_global_id(0);
  const int head = (int)get_global_id(1);
  const size_t row = get_global_id(2);
  const int half_dim = rotary_dim / 2;
  const int items = head_dim - half_dim;
  if (i >= items) return;
  const long slot = slots[row];
  if (head >= heads + kv_heads) {
    const int h = head - heads - kv_heads;
    __global const float* from = v + row * v_stride + h * head_dim;
    const size_t to = kv_offset(slot, h, block_size, kv_heads, head_dim);
    for (int d = i; d < head_dim; d += items)
      store_element(v_scale == 1.0f ? from[d] : divide(from[d], v_scale), v_cache, to + d);
    return;
  }
  const bool is_q = head < heads;
  __global const float* from =
      is_q ? q + row * q_stride + head * head_dim : k + row * k_stride + (head - heads) * head_dim;
  // Pairs, then single elements.
  const int low = i >= half_dim ? half_dim + i : interleaved ? 2 * i : i;
  const int high = interleaved ? 2 * i + 1 : half_dim + i;
  float a = from[low], b = 0.0f;
  if (i < half_dim) {
    __global const float* angles = cos_sin + (size_t)positions[row] * rotary_dim;
    const float c = angles[i], s = angles[half_dim + i];
    b = from[high];
    const float turned = a * c - b * s;
    b = rounded(b * c + a * s, round);
    a = turned;
  }
  a = rounded(a, round);
  if (is_q) {
    __global float* to = q + row * q_stride + head * head_dim;
    to[low] = a;
    if (i < half_dim) to[high] = b;
    return;
  }
  const size_t to = kv_offset(slot, head - heads, block_size, kv_heads, head_dim);
  store_element(k_scale == 1.0f ? a : divide(a, k_scale), k_cache, to + low);
  if (i < half_dim) store_element(k_scale == 1.0f ? b : divide(b, k_scale), k_cache, to + high);
}
