// softmax(q k^T * scale) v through block tables, one row and head at a time in lane vectors.
//
// Tokens come in splits of SPLIT and, inside one, in blocks of 16 at multiples of 16: a block's
// logits are one lane vector. Every split starts a softmax of its own and the results are merged in
// order, whether one item walks all splits or several take one each: the order of sums depends on
// neither the batch nor the cut. CHUNKS * 16 >= head_dim.
//
// GPUs have few registers: QUERIES chunks of the query are in them at a time, and a head of more than
// 128 elements is cut into items that sum VALUES chunks of its values each and all compute the same
// weights.
//
// Cost: reads K and V of the tokens once per row and head (K once for every VALUES chunks of a long
// head); 4 head_dim operations and an exponential per token.

#define QUERIES (CHUNKS < 4 ? CHUNKS : 4)
#define VALUES (CHUNKS <= 8 ? CHUNKS : 4)
#define FIRST_VALUE (CHUNKS <= 8 ? 0 : (int)get_global_id(2) * VALUES)

// A softmax in progress: the largest logit, the sum of exp(logit - largest), and the values summed
// with those weights.
typedef struct {
  float largest, sum;
  LvF values[VALUES];
} Partial;

inline void clear(Partial* p) {
  p->largest = -INFINITY;
  p->sum = 0.0f;
  _Pragma("unroll") for (int c = 0; c < VALUES; ++c) p->values[c] = (LvF)(0.0f);
}

// Where the 16 lanes of chunk c end in a head.
inline int chunk_width(int head_dim, int c) { return min(16, head_dim - c * 16); }

typedef struct {
  __global const Element* k;
  __global const Element* v;
  __global const int* table;
  int block_size, kv_heads, kv_head, head_dim;
  LvShared shared;
} Cache;

inline size_t token_offset(const Cache* cache, int token) {
  const long block = cache->table[token / cache->block_size];
  return (size_t)((block * cache->kv_heads + cache->kv_head) * cache->block_size +
                  token % cache->block_size) * cache->head_dim;
}

// Adds tokens [begin, end) of one block of 16 that starts at `block`.
inline void add_block(Partial* p, const Cache* cache, __global const float* query, float scale,
                      int block, int begin, int end) {
  LV_ARRAY(t);
  for (int j = 0; j < 16; ++j) LV_PUT(t, j, 0.0f);
  // Rolled: no more than QUERIES chunks of the query are in registers.
  __attribute__((opencl_unroll_hint(1)))
  for (int part = 0; part < CHUNKS; part += QUERIES) {
    LvF q[QUERIES];
    _Pragma("unroll") for (int c = 0; c < QUERIES; ++c)
      q[c] = lv_load_n(query + (part + c) * 16, chunk_width(cache->head_dim, part + c));
    for (int j = max(0, begin - block); j < min(16, end - block); ++j) {
      __global const Element* k = cache->k + token_offset(cache, block + j) + part * 16;
      LvF dot = (LvF)(0.0f);
      _Pragma("unroll") for (int c = 0; c < QUERIES; ++c) {
        const int width = chunk_width(cache->head_dim, part + c);
        dot = fma(q[c], load_lanes_n(k + c * 16, width), dot);
      }
      const float logit = lv_sum(dot, cache->shared);
      LV_ADD(t, j, logit);
    }
  }
  const LvF logits = LV_SELECT((LvF)(-INFINITY), LV_OF(t) * (LvF)(scale),
                               LV_INDEX >= begin - block && LV_INDEX < end - block);
  const float largest = fmax(p->largest, lv_max(logits, cache->shared));
  const float shrink = p->largest == largest ? 1.0f : exp(p->largest - largest);
  const LvF none = (LvF)(0.0f);
  const LvF weights = LV_SELECT(none, exp(logits - (LvF)(largest)),
                                LV_INDEX >= begin - block && LV_INDEX < end - block);
  p->largest = largest;
  p->sum = fma(p->sum, shrink, lv_sum(weights, cache->shared));
  _Pragma("unroll") for (int c = 0; c < VALUES; ++c) p->values[c] *= (LvF)(shrink);
#ifndef LV_SINGLE
  float w[16];
  vstore16(weights, 0, w);
#endif
  for (int j = max(0, begin - block); j < min(16, end - block); ++j) {
    __global const Element* v = cache->v + token_offset(cache, block + j);
#ifdef LV_SINGLE
    const float weight = LV_GET(weights, j, cache->shared);
#else
    const float weight = w[j];
#endif
    _Pragma("unroll") for (int c = 0; c < VALUES; ++c) {
      const int chunk = FIRST_VALUE + c;
      p->values[c] = fma((LvF)(weight),
                         load_lanes_n(v + chunk * 16, chunk_width(cache->head_dim, chunk)),
                         p->values[c]);
    }
  }
}

// a = a merged with b, whose tokens come later.
inline void merge(Partial* a, const Partial* b) {
  if (b->sum == 0.0f) return;
  const float largest = fmax(a->largest, b->largest);
  const float left = a->largest == largest ? 1.0f : exp(a->largest - largest);
  const float right = b->largest == largest ? 1.0f : exp(b->largest - largest);
  a->largest = largest;
  a->sum = fma(a->sum, left, b->sum * right);
  _Pragma("unroll") for (int c = 0; c < VALUES; ++c)
    a->values[c] = fma(a->values[c], (LvF)(left), b->values[c] * (LvF)(right));
}

inline void write_out(const Partial* p, float v_scale, __global float* out, int head_dim) {
  const float factor = v_scale / p->sum;
  _Pragma("unroll") for (int c = 0; c < VALUES; ++c) {
    const int chunk = FIRST_VALUE + c;
    lv_store_n(p->values[c] * (LvF)(factor), out + chunk * 16, chunk_width(head_dim, chunk));
  }
}

// Item (row * heads + head, split, part of the values); with `splits` 1 an item takes all splits and
// writes `out`, else its own, into `partials` [row * heads + head][split][2 + CHUNKS * 16].
LV_KERNEL __kernel void attend(__global const float* q, int q_stride, __global const Element* k_cache,
                               __global const Element* v_cache, int block_size,
                               __global const int* spans, int span_count,
                               __global const int* block_tables, int table_stride, int rows,
                               int heads, int kv_heads, int head_dim, int window, float scale,
                               float v_scale, __global float* out, int out_stride, int splits,
                               __global float* partials) {
  LV_SHARED(shared);
  const int item = LV_PANEL;
  const int split = (int)get_global_id(1);
  const int row = item / heads, head = item % heads;
  if (row >= rows) return;
  // A span is [row_begin, rows, context, table].
  int s = 0;
  while (s < span_count && (row < spans[4 * s] || row >= spans[4 * s] + spans[4 * s + 1])) ++s;
  if (s == span_count) return;
  const int last = spans[4 * s + 2] + row - spans[4 * s];
  const int first = window > 0 ? max(0, last - window + 1) : 0;
  const Cache cache = {k_cache, v_cache, block_tables + (size_t)spans[4 * s + 3] * table_stride,
                       block_size, kv_heads, head / (heads / kv_heads), head_dim, shared};
  __global const float* query = q + (size_t)row * q_stride + head * head_dim;
  Partial all;
  clear(&all);
  const int split_begin = splits == 1 ? first / SPLIT : split;
  const int split_end = splits == 1 ? last / SPLIT + 1 : split + 1;
  for (int i = split_begin; i < split_end; ++i) {
    Partial part;
    clear(&part);
    const int begin = max(first, i * SPLIT);
    const int end = min(last + 1, (i + 1) * SPLIT);
    for (int block = begin & ~15; block < end; block += 16)
      add_block(&part, &cache, query, scale, block, begin, end);
    merge(&all, &part);
  }
  if (splits == 1) {
    write_out(&all, v_scale, out + (size_t)row * out_stride + head * head_dim, head_dim);
    return;
  }
  __global float* place = partials + ((size_t)item * splits + split) * (2 + CHUNKS * 16);
  _Pragma("unroll") for (int c = 0; c < VALUES; ++c) {
    if (FIRST_VALUE + c < CHUNKS) lv_store_n(all.values[c], place + 2 + (FIRST_VALUE + c) * 16, 16);
  }
  if (FIRST_VALUE != 0) return;
  place[0] = all.largest;
  place[1] = all.sum;
}

// Merges the partial results of every row and head in order.
LV_KERNEL __kernel void merge_splits(__global const float* partials, int splits, int items, int heads,
                                     int head_dim, float v_scale, __global float* out,
                                     int out_stride) {
  const int item = LV_PANEL;
  if (item >= items) return;
  Partial all;
  clear(&all);
  for (int split = 0; split < splits; ++split) {
    __global const float* place = partials + ((size_t)item * splits + split) * (2 + CHUNKS * 16);
    Partial part;
    part.largest = place[0];
    part.sum = place[1];
    _Pragma("unroll") for (int c = 0; c < VALUES; ++c)
      part.values[c] = FIRST_VALUE + c < CHUNKS ? lv_load(place + 2 + (FIRST_VALUE + c) * 16)
                                                : (LvF)(0.0f);
    merge(&all, &part);
  }
  write_out(&all, v_scale, out + (size_t)(item / heads) * out_stride + (item % heads) * head_dim,
            head_dim);
}
