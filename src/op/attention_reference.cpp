#include "op/attention_reference.h"

#include <algorithm>
#include <cmath>

#include "num/error_bound.h"
#include "num/tensor.h"

namespace octet {
namespace {

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

// One token that a row sees.
struct Token {
  int64_t at = 0;  // of its key and value in the cache, in elements
  double logit = 0;
  double weight = 0;               // softmax of the logits
  double probable = 0, worst = 0;  // relative errors of the weight
};

// The row's last token, and those before it that it sees, with their weights.
std::vector<Token> tokens_of(const Attention::Args& args, const SeqSpan& span, int64_t row,
                             int64_t head) {
  const int64_t dim = args.head_dim;
  const int64_t last = span.context + row - span.row_begin;
  const int64_t first = args.window > 0 ? std::max<int64_t>(0, last - args.window + 1) : 0;
  const int64_t kv_head = head / (args.heads / args.kv_heads);
  const int32_t* table = args.block_tables + span.table * args.table_stride;
  const float* q = args.q + row * args.q_stride + head * dim;
  const ConstTensorView k{static_cast<const std::byte*>(args.k_cache), args.kv_dtype, {}, 0};
  std::vector<Token> tokens;
  double largest = -INFINITY;
  for (int64_t token = first; token <= last; ++token) {
    Token t;
    const int64_t block = table[token / args.block_size];
    t.at = ((block * args.kv_heads + kv_head) * args.block_size + token % args.block_size) * dim;
    double magnitude = 0;
    for (int64_t d = 0; d < dim; ++d) {
      const double term = double{q[d]} * element(k, t.at + d) * args.k_scale * args.scale;
      t.logit += term;
      magnitude += std::fabs(term);
    }
    t.probable = probable_bound(dot_chain(dim), magnitude);
    t.worst = worst_bound(dot_chain(dim), magnitude);
    largest = std::max(largest, t.logit);
    tokens.push_back(t);
  }
  double sum = 0;
  for (Token& t : tokens) sum += t.weight = std::exp(t.logit - largest);
  for (Token& t : tokens) {
    t.weight /= sum;
    // The error of a logit is a relative error of the weight; so are the rounding of logit -
    // maximum and exp's own.
    const double own = (largest - t.logit + kExpUlps) * 0x1p-24;
    t.probable += own;
    t.worst = std::expm1(t.worst + own);
  }
  return tokens;
}

}  // namespace

std::vector<AttentionExpected> attention_reference(const Attention::Args& args, const SeqSpan& span,
                                                   int64_t row, int64_t head) {
  const std::vector<Token> tokens = tokens_of(args, span, row, head);
  const auto count = static_cast<int64_t>(tokens.size());
  const ConstTensorView v{static_cast<const std::byte*>(args.v_cache), args.kv_dtype, {}, 0};
  std::vector<AttentionExpected> out(static_cast<size_t>(args.head_dim));
  std::vector<double> values(tokens.size());
  for (int64_t d = 0; d < args.head_dim; ++d) {
    AttentionExpected& e = out[static_cast<size_t>(d)];
    double magnitude = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      values[i] = double{element(v, tokens[i].at + d)} * args.v_scale;
      e.value += tokens[i].weight * values[i];
      magnitude += std::fabs(tokens[i].weight * values[i]);
    }
    // A weight with relative error r moves the result by at most weight * r * |v - value|.
    double variance = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const double lever = tokens[i].weight * std::fabs(values[i] - e.value);
      variance += lever * lever * tokens[i].probable * tokens[i].probable;
      e.worst += lever * tokens[i].worst;
    }
    const double rounding = std::fabs(e.value) * 0x1p-24 + 0x1p-149;
    const double sums = magnitude + std::fabs(e.value);
    e.worst += worst_bound(token_chain(count), sums) + rounding;
    // Errors of different tokens are independent.
    e.probable = probable_bound(token_chain(count), sums) + std::sqrt(variance) + rounding;
  }
  return out;
}

}  // namespace octet
