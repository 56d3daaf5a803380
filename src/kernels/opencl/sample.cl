// The best tokens of a row of logits, and log-probabilities; GROUP work-items share a row.
//
// Tokens have an order: larger logit first (NaN is the smallest), then the lower id. A logit's key
// is an unsigned number in that order; a place in it is a key and an id.

inline uint key_of(float logit) {
  const float v = isnan(logit) ? -INFINITY : logit;
  const uint u = as_uint(v == 0.0f ? 0.0f : v);
  return (u & 0x80000000u) ? ~u : u | 0x80000000u;
}
inline float logit_of(uint key) {
  return as_float((key & 0x80000000u) ? key & 0x7FFFFFFFu : ~key);
}

typedef struct {
  uint key;
  int id;
} Place;

inline bool at_or_before(uint key, int id, Place end) {
  return key > end.key || (key == end.key && id <= end.id);
}

// The best token behind `after` in the order.
inline Place next_best(__global const float* logits, int vocab, Place after, __local uint* t) {
  uint best = 0;
  for (int i = (int)get_local_id(0); i < vocab; i += GROUP) {
    const uint key = key_of(logits[i]);
    if (!at_or_before(key, i, after)) best = max(best, key);
  }
  best = group_max(t, best);
  uint id = 0x7FFFFFFFu;
  for (int i = (int)get_local_id(0); i < vocab; i += GROUP) {
    const uint key = key_of(logits[i]);
    if (key == best && !at_or_before(key, i, after)) id = min(id, (uint)i);
  }
  const Place place = {best, (int)group_min(t, id)};
  return place;
}

#define BEFORE_ALL ((Place){0xFFFFFFFFu, 0x7FFFFFFF})

// log(sum(exp(logits - largest))) as a pair of floats, by compensated sums; NaN when a logit is NaN
// or +infinity. The logarithm is taken of the mantissa, near one, where it is most exact; the two
// parts of log(2) make its product with the exponent exact.
inline float2 log_sum(__global const float* logits, int vocab, float largest, __local float2* sums) {
  float2 sum = (float2)(0.0f);
  for (int i = (int)get_local_id(0); i < vocab; i += GROUP)
    sum = add_pairs(sum, (float2)(exp(logits[i] - largest), 0.0f));
  sum = group_sum_pairs(sums, sum);
  int exponent;
  float mantissa = frexp(sum.x, &exponent);
  if (mantissa < 0.75f) {
    mantissa *= 2.0f;
    exponent -= 1;
  }
  return two_sum((float)exponent * 0.693359375f,
                 log(mantissa) - (float)exponent * 2.12194440e-4f + sum.y / sum.x);
}

inline float log_probability(float logit, float largest, float2 log_sum) {
  const float2 above = two_sum(logit, -largest);
  const float2 value = two_sum(above.x, -log_sum.x);
  const float rest = (value.y - log_sum.y) + above.y;
  return isfinite(value.x) ? value.x + rest : value.x;
}

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void argmax(__global const float* logits, int vocab, __global int* out,
                     __global int* not_finite, int tag) {
  __local uint t[GROUP];
  const size_t row = get_group_id(0);
  logits += row * vocab;
  const Place best = next_best(logits, vocab, BEFORE_ALL, t);
  uint top = 0;
  for (int i = (int)get_local_id(0); i < vocab; i += GROUP)
    top = max(top, as_uint(logits[i]) & 0x7FFFFFFFu);
  top = group_max(t, top);
  if (get_local_id(0) != 0) return;
  out[row] = best.id;
  if (top >= 0x7F800000u && not_finite != 0) not_finite[row] = min(not_finite[row], tag);
}

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void topk(__global const float* logits, int vocab, int k, __global int* ids,
                   __global float* logprobs) {
  __local uint t[GROUP];
  __local float2 sums[GROUP];
  const size_t row = get_group_id(0);
  logits += row * vocab;
  const float largest = logit_of(next_best(logits, vocab, BEFORE_ALL, t).key);
  const float2 sum = log_sum(logits, vocab, largest, sums);
  Place place = BEFORE_ALL;
  for (int i = 0; i < k; ++i) {
    place = next_best(logits, vocab, place, t);
    if (get_local_id(0) != 0) continue;
    ids[row * k + i] = place.id;
    logprobs[row * k + i] = log_probability(logits[place.id], largest, sum);
  }
}

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void logprob(__global const float* logits, int vocab, __global const int* ids,
                      __global float* out) {
  __local uint t[GROUP];
  __local float2 sums[GROUP];
  const size_t row = get_group_id(0);
  logits += row * vocab;
  const float largest = logit_of(next_best(logits, vocab, BEFORE_ALL, t).key);
  const float2 sum = log_sum(logits, vocab, largest, sums);
  if (get_local_id(0) == 0) out[row] = log_probability(logits[ids[row]], largest, sum);
}
