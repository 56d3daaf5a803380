#include "tests/conformance/attention_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "num/bf16.h"
#include "num/error_bound.h"
#include "num/f8.h"
#include "num/tensor.h"
#include "tests/conformance/random.h"

namespace octet::conformance {
namespace {

// Distance in floats between q rows and their heads' end: q is a column range of a fused qkv.
constexpr int64_t kQPad = 24;

void store(std::byte* dst, DType dtype, float value) {
  if (is_f8(dtype)) {
    *dst = std::byte{f32_to_f8(dtype, value)};
  } else if (dtype == DType::F32) {
    std::memcpy(dst, &value, sizeof value);
  } else {
    OCTET_CHECK(dtype == DType::F16 || dtype == DType::BF16, "dtype is {}", name(dtype));
    const uint16_t bits = dtype == DType::F16 ? f32_to_f16(value) : f32_to_bf16(value);
    std::memcpy(dst, &bits, sizeof bits);
  }
}

// The order of sums of every f32 kernel: a dot product over head_dim in at least 8 lanes with two
// scales, then weights summed over the tokens of a split and the splits merged one by one.
constexpr int64_t kDotLanes = 8;
int64_t dot_chain(int64_t head_dim) {
  return longest_chain({.longest = head_dim, .lanes = kDotLanes, .roundings = 3});
}
int64_t token_chain(int64_t tokens) {
  const int64_t splits = (tokens + kKvSplit - 1) / kKvSplit;
  // Per split: the tokens' additions, a rescale when the maximum moves, a merge; then v_scale and
  // the division.
  return std::min(tokens, kKvSplit) + 4 * splits + 4;
}

// Relative error of exp() as every kernel states it (vector_math_avx2.h), in units of 2^-24.
constexpr double kExpUlps = 2;

}  // namespace

AttentionData::AttentionData(const AttentionCase& c, uint64_t seed) : case_(c) {
  Random random(seed);
  const auto value = [&](double scale) {
    return static_cast<float>(c.one_sign ? scale * random.uniform(0.5, 1.5)
                                         : scale * random.bell());
  };
  int64_t rows = 0;
  int64_t blocks = 0;
  int64_t longest = 0;
  for (const auto& [context, count] : c.spans) {
    longest = std::max<int64_t>(longest, context + count);
    blocks += (context + count + c.block_size - 1) / c.block_size;
  }
  const int64_t table_stride = (longest + c.block_size - 1) / c.block_size + 3;
  // Blocks of all sequences in one shuffled order; block 0 belongs to nobody.
  std::vector<int32_t> order(static_cast<size_t>(blocks));
  std::iota(order.begin(), order.end(), 1);
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  }
  tables_.assign(c.spans.size() * static_cast<size_t>(table_stride), -1);
  size_t next_block = 0;
  for (size_t s = 0; s < c.spans.size(); ++s) {
    const auto [context, count] = c.spans[s];
    // Tables in reverse, so that a span's table is not its index.
    const auto table = static_cast<int32_t>(c.spans.size() - 1 - s);
    spans_.push_back({static_cast<int32_t>(rows), count, context, table});
    rows += count;
    for (int64_t b = 0; b * c.block_size < context + count; ++b) {
      tables_[static_cast<size_t>(table * table_stride + b)] = order[next_block++];
    }
  }
  const int64_t stride = c.heads * c.head_dim + kQPad;
  const double size = std::sqrt(c.spread / std::sqrt(static_cast<double>(c.head_dim)));
  for (int64_t i = 0; i < rows * stride; ++i) q_.push_back(value(size * std::sqrt(c.head_dim)));
  const int64_t elements = (blocks + 1) * c.kv_heads * c.block_size * c.head_dim;
  const int64_t width = bytes_of(c.kv_dtype);
  // What no sequence wrote must not be read: 0xFF is NaN in every type.
  k_.assign(static_cast<size_t>(elements * width), std::byte{0xFF});
  v_ = k_;
  for (const SeqSpan& span : spans_) {
    for (int64_t token = 0; token < span.context + span.rows; ++token) {
      const int64_t block =
          tables_[static_cast<size_t>(span.table * table_stride + token / c.block_size)];
      for (int64_t h = 0; h < c.kv_heads; ++h) {
        const int64_t at =
            ((block * c.kv_heads + h) * c.block_size + token % c.block_size) * c.head_dim;
        for (int64_t d = 0; d < c.head_dim; ++d) {
          store(k_.data() + (at + d) * width, c.kv_dtype, value(size) / c.k_scale);
          store(v_.data() + (at + d) * width, c.kv_dtype, value(1) / c.v_scale);
        }
      }
    }
  }
  args_.q = q_.data();
  args_.q_stride = stride;
  args_.k_cache = k_.data();
  args_.v_cache = v_.data();
  args_.kv_dtype = c.kv_dtype;
  args_.block_size = c.block_size;
  args_.spans = spans_.data();
  args_.span_count = static_cast<int64_t>(spans_.size());
  args_.block_tables = tables_.data();
  args_.table_stride = table_stride;
  args_.rows = rows;
  args_.max_context = longest;
  args_.heads = c.heads;
  args_.kv_heads = c.kv_heads;
  args_.head_dim = c.head_dim;
  args_.window = c.window;
  args_.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_dim)));
  args_.k_scale = c.k_scale;
  args_.v_scale = c.v_scale;
}

Attention::Problem AttentionData::problem() const {
  return {case_.heads,    case_.kv_heads, case_.head_dim,
          case_.kv_dtype, args_.rows,     args_.max_context};
}

void AttentionData::expect(const SeqSpan& span, int64_t row, int64_t head, Expected* out) const {
  const int64_t dim = case_.head_dim;
  const int64_t last = span.context + row - span.row_begin;
  const int64_t first = case_.window > 0 ? std::max<int64_t>(0, last - case_.window + 1) : 0;
  const int64_t kv_head = head / (case_.heads / case_.kv_heads);
  const ConstTensorView k{k_.data(), case_.kv_dtype, {}, 0};
  const ConstTensorView v{v_.data(), case_.kv_dtype, {}, 0};
  const auto at = [&](int64_t token) {
    const int64_t block =
        tables_[static_cast<size_t>(span.table * args_.table_stride + token / case_.block_size)];
    return ((block * case_.kv_heads + kv_head) * case_.block_size + token % case_.block_size) * dim;
  };
  struct Token {
    double logit = 0, magnitude = 0;
  };
  std::vector<Token> tokens;
  double largest = -INFINITY;
  for (int64_t token = first; token <= last; ++token) {
    Token t;
    for (int64_t d = 0; d < dim; ++d) {
      const double term = double{q_[static_cast<size_t>(row * args_.q_stride + head * dim + d)]} *
                          element(k, at(token) + d) * args_.k_scale * args_.scale;
      t.logit += term;
      t.magnitude += std::fabs(term);
    }
    largest = std::max(largest, t.logit);
    tokens.push_back(t);
  }
  double sum = 0;
  for (const Token& t : tokens) sum += std::exp(t.logit - largest);
  const auto count = static_cast<int64_t>(tokens.size());
  for (int64_t d = 0; d < dim; ++d) {
    double value = 0;
    double magnitude = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double term = std::exp(tokens[static_cast<size_t>(i)].logit - largest) / sum *
                          element(v, at(first + i) + d) * args_.v_scale;
      value += term;
      magnitude += std::fabs(term);
    }
    Expected& e = out[head * dim + d];
    e.value = value;
    e.probable = probable_bound(token_chain(count), magnitude + std::fabs(value));
    e.worst = worst_bound(token_chain(count), magnitude + std::fabs(value));
    // A weight with relative error r moves the result by at most p r |v - value|. Its logit's error
    // is a relative error of the weight; so are the rounding of logit - maximum and exp's own.
    double weight_variance = 0;
    for (int64_t i = 0; i < count; ++i) {
      const Token& t = tokens[static_cast<size_t>(i)];
      const double lever = std::exp(t.logit - largest) / sum *
                           std::fabs(element(v, at(first + i) + d) * args_.v_scale - value);
      const double own = (largest - t.logit + kExpUlps) * 0x1p-24;
      const double probable = probable_bound(dot_chain(dim), t.magnitude) + own;
      weight_variance += lever * lever * probable * probable;
      e.worst += lever * std::expm1(worst_bound(dot_chain(dim), t.magnitude) + own);
    }
    // Errors of different tokens are independent.
    e.probable += std::sqrt(weight_variance);
  }
}

std::vector<AttentionData::Expected> AttentionData::expected() const {
  const int64_t width = case_.heads * case_.head_dim;
  std::vector<Expected> all(static_cast<size_t>(args_.rows * width));
  for (const SeqSpan& span : spans_) {
    for (int64_t row = span.row_begin; row < span.row_begin + span.rows; ++row) {
      for (int64_t head = 0; head < case_.heads; ++head) {
        expect(span, row, head, all.data() + row * width);
      }
    }
  }
  return all;
}

Attention::Args AttentionData::part(size_t span, int32_t first, int32_t count,
                                    std::vector<SeqSpan>& storage) const {
  const SeqSpan& whole = spans_[span];
  storage.assign(1, {0, count, whole.context + first, whole.table});
  Attention::Args args = args_;
  args.q = args_.q + (whole.row_begin + first) * args_.q_stride;
  args.spans = storage.data();
  args.span_count = 1;
  args.rows = count;
  args.max_context = whole.context + first + count;
  return args;
}

}  // namespace octet::conformance
