#include "op/attention_problem.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/split_mix.h"
#include "op/expected.h"

namespace octet {

AttentionData::AttentionData(const AttentionCase& c, uint64_t seed) : case_(c) {
  args_.q_stride = c.heads * c.head_dim + c.q_gap;
  args_.kv_dtype = c.kv_dtype;
  args_.block_size = c.block_size;
  args_.heads = c.heads;
  args_.kv_heads = c.kv_heads;
  args_.head_dim = c.head_dim;
  args_.window = c.window;
  args_.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_dim)));
  args_.k_scale = c.k_scale;
  args_.v_scale = c.v_scale;
  place_spans(seed);
  fill(seed + 1);
  args_.q = q_.data();
  args_.k_cache = k_.data();
  args_.v_cache = v_.data();
  args_.spans = spans_.data();
  args_.block_tables = tables_.data();
}

// Spans, and the blocks of all sequences in one shuffled order; block 0 belongs to nobody.
void AttentionData::place_spans(uint64_t seed) {
  const AttentionCase& c = case_;
  int64_t blocks = 0;
  for (const auto& [context, count] : c.spans) {
    args_.max_context = std::max<int64_t>(args_.max_context, context + count);
    blocks += (context + count + c.block_size - 1) / c.block_size;
  }
  args_.table_stride = (args_.max_context + c.block_size - 1) / c.block_size + 3;
  std::vector<int32_t> order(static_cast<size_t>(blocks));
  std::iota(order.begin(), order.end(), 1);
  SplitMix64 random(seed);
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  }
  tables_.assign(c.spans.size() * static_cast<size_t>(args_.table_stride), -1);
  size_t next_block = 0;
  for (size_t s = 0; s < c.spans.size(); ++s) {
    const auto [context, count] = c.spans[s];
    // Tables in reverse, so that a span's table is not its index.
    const auto table = static_cast<int32_t>(c.spans.size() - 1 - s);
    spans_.push_back({static_cast<int32_t>(args_.rows), count, context, table});
    args_.rows += count;
    for (int64_t b = 0; b * c.block_size < context + count; ++b) {
      tables_[static_cast<size_t>(table * args_.table_stride + b)] = order[next_block++];
    }
  }
  args_.span_count = static_cast<int64_t>(spans_.size());
  const int64_t elements = (blocks + 1) * c.kv_heads * c.block_size * c.head_dim;
  // 0xFF is NaN in every type.
  k_.assign(static_cast<size_t>(elements * bytes_of(c.kv_dtype)), std::byte{0xFF});
  v_ = k_;
}

void AttentionData::fill(uint64_t seed) {
  const AttentionCase& c = case_;
  SplitMix64 random(seed);
  const auto value = [&](double scale) {
    return static_cast<float>(scale * (c.one_sign ? 0.5 + random.uniform() : random.bell()));
  };
  const double size = std::sqrt(c.spread / std::sqrt(static_cast<double>(c.head_dim)));
  q_.resize(static_cast<size_t>(args_.rows * args_.q_stride));
  for (float& q : q_) q = value(size * std::sqrt(c.head_dim));
  const int64_t width = bytes_of(c.kv_dtype);
  for (const SeqSpan& span : spans_) {
    const int32_t* table = tables_.data() + span.table * args_.table_stride;
    for (int64_t token = 0; token < span.context + span.rows; ++token) {
      const int64_t block = table[token / c.block_size];
      for (int64_t h = 0; h < c.kv_heads; ++h) {
        const int64_t at =
            ((block * c.kv_heads + h) * c.block_size + token % c.block_size) * c.head_dim;
        for (int64_t d = 0; d < c.head_dim; ++d) {
          store_value(k_.data() + (at + d) * width, c.kv_dtype, value(size) / c.k_scale);
          store_value(v_.data() + (at + d) * width, c.kv_dtype, value(1) / c.v_scale);
        }
      }
    }
  }
}

Attention::Problem AttentionData::problem() const {
  return {case_.heads,    case_.kv_heads, case_.head_dim,
          case_.kv_dtype, args_.rows,     args_.max_context};
}

std::vector<AttentionExpected> AttentionData::expected() const {
  std::vector<AttentionExpected> all;
  for (const SeqSpan& span : spans_) {
    for (int64_t row = span.row_begin; row < span.row_begin + span.rows; ++row) {
      for (int64_t head = 0; head < case_.heads; ++head) {
        const auto part = attention_reference(args_, span, row, head);
        all.insert(all.end(), part.begin(), part.end());
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

}  // namespace octet
