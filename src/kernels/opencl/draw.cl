// One token of a row's distribution, in lane vectors: an item a row.
//
// Tokens have an order: larger logit first (NaN is the smallest), then the lower id. A logit's key is
// an unsigned number in that order, and a place in it is a key and an id. Every filter moves the end
// of the tokens kept to an earlier place, and the token drawn is the place where the sum of weights
// passes the random number: places are found by bisection, bit by bit, which needs no sorting.
// Cost: two passes over the vocabulary, and for each filter and the draw about 32 + log2(vocab).

typedef struct {
  uint key;
  int id;
} Place;

// One row: keys of the logits after the penalty, weights, and the last token kept.
typedef struct {
  __global uint* keys;
  __global float* weights;
  int vocab;
  Place end;
  LvShared shared;
} Row;

inline bool before(Place a, Place b) { return a.key > b.key || (a.key == b.key && a.id < b.id); }

inline LvU keys_of(LvF logits) {
  const LvF v = LV_SELECT(logits, (LvF)(-INFINITY), isnan(logits));
  const LvU u = LV_AS_U(v + (LvF)(0.0f));
  return u ^ ((LvU)(0u) - (u >> 31) | (LvU)(0x80000000u));
}

inline LvU load_keys(const Row* row, int i) {
#ifdef LV_SINGLE
  return i + LV_LANE < row->vocab ? row->keys[i + LV_LANE] : 0u;
#else
  return LV_AS_U(lv_load_n((__global const float*)row->keys + i, row->vocab - i));
#endif
}

// Lanes of tokens i... that are at `place` or before it; lanes behind the vocabulary have key 0.
#define UP_TO(key, i, place)                       \
  (((key) > (LvU)((place).key)) |                  \
   (((key) == (LvU)((place).key)) & (LV_INDEX + (i) <= (place).id)))

// The weights of the tokens kept up to `place`; or, with `counted`, their number.
inline float mass(const Row* row, Place place, bool counted) {
  if (before(row->end, place)) place = row->end;
  const LvF none = (LvF)(0.0f);
  LvF sum = none;
  for (int i = 0; i < row->vocab; i += 16) {
    const LvU key = load_keys(row, i);
    const LvF term =
        counted ? (LvF)(1.0f) : lv_load_n(row->weights + i, row->vocab - i);
    sum += LV_SELECT(none, term, UP_TO(key, i, place));
  }
  return lv_sum(sum, row->shared);
}

// The first place whose prefix has at least `enough`, or more than it with `above`; row->end when
// none has. Sums over one set of tokens are always the same, so the place is that of a token.
inline Place first_reaching(const Row* row, bool counted, float enough, bool above) {
  Place place = {0u, 0x7FFFFFFF};
  for (uint bit = 0x80000000u; bit != 0; bit >>= 1) {
    const Place next = {place.key | bit, 0x7FFFFFFF};
    const float has = mass(row, next, counted);
    if (above ? has > enough : has >= enough) place = next;
  }
  if (place.key == 0u) return row->end;
  int low = -1, high = row->vocab - 1;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    const Place next = {place.key, middle};
    const float has = mass(row, next, counted);
    if (above ? has > enough : has >= enough) {
      high = middle;
    } else {
      low = middle;
    }
  }
  place.id = high;
  return before(row->end, place) ? row->end : place;
}

// The last token kept whose weight is at least `least` and not zero; the first place without any.
inline Place last_above(const Row* row, float least) {
  Place last = {0xFFFFFFFFu, -1};
  for (int i = 0; i < row->vocab; ++i) {
    const Place place = {row->keys[i], i};
    const float w = row->weights[i];
    if (w >= least && w > 0.0f && !before(row->end, place) && before(last, place)) last = place;
  }
  return last;
}

// The first of the largest logits: -infinity counts as a largest one only when all are.
inline Place best_token(const Row* row) {
  LvF largest = (LvF)(-INFINITY);
  for (int i = 0; i < row->vocab; i += 16) {
    const LvU key = load_keys(row, i);
    largest = fmax(largest, LV_AS_F(LV_SELECT_U(~key, key & (LvU)(0x7FFFFFFFu), key >> 31)));
  }
  Place best = {0u, 0};
  const float top = lv_max(largest, row->shared);
  const uint u = as_uint(top + 0.0f);
  best.key = u ^ (0u - (u >> 31) | 0x80000000u);
  while (best.id < row->vocab - 1 && row->keys[best.id] != best.key) ++best.id;
  return best;
}

// SampleParams of op/sample.h.
typedef struct {
  float temperature;
  int top_k;
  float top_p, min_p, repetition_penalty;
  int history_begin, history_end;
  uint pad;
  ulong random;
} SampleParams;

LV_KERNEL __kernel void draw(__global const float* logits, int rows, int vocab,
                             __global const SampleParams* params, __global const int* history,
                             __global int* out, __global float* scratch) {
  LV_SHARED(shared);
  const int r = LV_PANEL;
  if (r >= rows) return;
  const SampleParams p = params[r];
  logits += (size_t)r * vocab;
  scratch += (size_t)r * 2 * vocab;
  Row row = {(__global uint*)scratch, scratch + vocab, vocab, {0u, 0x7FFFFFFF}, shared};
  // Weights hold the logits until they are known.
  for (int i = 0; i < vocab; i += 16)
    lv_store_n(lv_load_n(logits + i, vocab - i), row.weights + i, vocab - i);
  LV_SYNC;
  // A token that was seen often is written the same value often.
  for (int i = p.history_begin + LV_FIRST; i < p.history_end; i += LV_STEP) {
    const int id = history[i];
    if (id < 0 || id >= vocab) continue;
    const float v = logits[id];
    row.weights[id] = v > 0.0f ? v / p.repetition_penalty : v * p.repetition_penalty;
  }
  LV_SYNC;
  for (int i = 0; i < vocab; i += 16) {
    const LvU key = keys_of(lv_load_n(row.weights + i, vocab - i));
    lv_store_n(LV_AS_F(key), (__global float*)row.keys + i, vocab - i);
  }
  LV_SYNC;
  const Place best = best_token(&row);
  if (p.temperature == 0.0f) {
    out[r] = best.id;
    return;
  }
  const float largest = row.weights[best.id];
  LV_SYNC;
  for (int i = 0; i < vocab; i += 16) {
    const LvF v = lv_load_n(row.weights + i, vocab - i);
    const LvF w = exp((v - (LvF)(largest)) / (LvF)(p.temperature));
    const LvF known = LV_SELECT(w, (LvF)(0.0f), isnan(w));
    lv_store_n(LV_SELECT(known, (LvF)(1.0f), v == (LvF)(largest)), row.weights + i, vocab - i);
  }
  LV_SYNC;
  if (p.top_k > 0 && p.top_k < vocab) row.end = first_reaching(&row, true, (float)p.top_k, false);
  if (p.top_p < 1.0f)
    row.end = first_reaching(&row, false, p.top_p * mass(&row, row.end, false), false);
  if (before(row.end, best)) row.end = best;
  if (p.min_p > 0.0f) {
    const Place last = last_above(&row, p.min_p);
    if (before(last, row.end)) row.end = last;
    if (before(row.end, best)) row.end = best;
  }
  const float all = mass(&row, row.end, false);
  // 24 bits make a uniform number in [0, 1).
  const float target = (float)(p.random >> 40) * 0x1p-24f * all;
  Place drawn = first_reaching(&row, false, target, true);
  if (drawn.id >= vocab || !(row.weights[drawn.id] > 0.0f)) drawn = last_above(&row, 0.0f);
  out[r] = drawn.id >= 0 && all > 0.0f ? drawn.id : best.id;
}
