// Sums and largest values over a work-group of GROUP work-items, the same in every one of them. Item
// i < 8 folds elements i, i + 8, ..., then every item folds those eight: the order is fixed, so it
// depends on nothing but GROUP. `t` has GROUP elements.

#define GROUP_FOLD(name, type, expression)                        \
  inline type name(__local type* t, type v) {                     \
    const int i = (int)get_local_id(0);                           \
    t[i] = v;                                                     \
    barrier(CLK_LOCAL_MEM_FENCE);                                 \
    if (i < 8) {                                                  \
      type a = t[i];                                              \
      for (int j = i + 8; j < GROUP; j += 8) {                    \
        const type b = t[j];                                      \
        a = expression;                                           \
      }                                                           \
      t[i] = a;                                                   \
    }                                                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                 \
    type a = t[0];                                                \
    for (int j = 1; j < 8; ++j) {                                 \
      const type b = t[j];                                        \
      a = expression;                                             \
    }                                                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                 \
    return a;                                                     \
  }

GROUP_FOLD(group_sum, float, a + b)
GROUP_FOLD(group_max, uint, max(a, b))
GROUP_FOLD(group_min, uint, min(a, b))
GROUP_FOLD(group_sum_pairs, float2, add_pairs(a, b))
