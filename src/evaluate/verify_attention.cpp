// Attention of octet verify.
#include <algorithm>
#include <set>

#include "evaluate/verify_ops.h"
#include "op/attention_problem.h"

namespace octet {
namespace {

// A prompt; a row after more than two splits of the cache, or more than a window; some rows after a
// short context.
constexpr int64_t kPrompt = 37, kContext = 2 * kKvSplit + 188, kPastWindow = 40;
constexpr int64_t kChunk = 3, kChunkContext = 20;
// Of wide windows only so much is used: the cache of both sequences stays small.
constexpr int64_t kLongestContext = 4200;

// Products in double precision per window without `all`: about 0.2 s of one core.
constexpr int64_t kProducts = int64_t{1} << 26;

AttentionCase case_of(const Model& model, int64_t window) {
  const ModelPlan& plan = model.plan;
  const int64_t longest = std::min(plan.budget.max_model_len, kLongestContext);
  AttentionCase c;
  c.heads = plan.dims.heads;
  c.kv_heads = plan.dims.kv_heads;
  c.head_dim = plan.dims.head_dim;
  c.block_size = plan.kv.block_size;
  c.window = window;
  c.kv_dtype = plan.kv.dtype;
  c.k_scale = plan.kv.k_scale.value_or(1);
  c.v_scale = plan.kv.v_scale.value_or(1);
  c.q_gap = 0;
  const auto add = [&](int64_t context, int64_t rows) {
    context = std::clamp<int64_t>(longest - rows, 0, context);
    rows = std::min(rows, longest);
    c.spans.emplace_back(static_cast<int32_t>(context), static_cast<int32_t>(rows));
  };
  add(0, kPrompt);
  add(std::max(kContext, window > 0 ? window + kPastWindow : 0), 1);
  add(kChunkContext, kChunk);
  return c;
}

// The kernel's output on the batch, [rows, heads * head_dim].
std::vector<float> outputs(const OpCheckScope& scope, const Kernel<Attention>& kernel,
                           const AttentionData& data) {
  DeviceArrays arrays(scope);
  Attention::Args args = data.args();
  const int64_t width = args.heads * args.head_dim;
  const auto count = static_cast<size_t>(args.rows * width);
  auto* out = static_cast<float*>(arrays.bytes(count * sizeof(float)));
  args.q = arrays.up(data.q());
  args.k_cache = arrays.up(data.k_cache());
  args.v_cache = arrays.up(data.v_cache());
  args.spans = arrays.up(data.spans());
  args.block_tables = arrays.up(data.block_tables());
  args.out = out;
  args.out_stride = width;
  args.scratch =
      arrays.bytes(kernel.scratch_bytes == nullptr
                       ? 0
                       : kernel.scratch_bytes(data.problem(), scope.stream.pool().threads()));
  launch(kernel, args, scope.stream);
  return arrays.down(out, count);
}

// One row and head whose output is compared.
struct Item {
  const SeqSpan* span;
  int64_t row, head;
};

// All, or as many heads of each row as the products pay for: other heads in each row.
std::vector<Item> items_of(const AttentionData& data, bool all) {
  const Attention::Args& args = data.args();
  int64_t products = 0;
  for (const SeqSpan& span : data.spans()) {
    const int64_t seen = span.context + span.rows;
    products += span.rows * args.heads * args.head_dim *
                (args.window > 0 ? std::min(seen, args.window) : seen);
  }
  const int64_t step = all ? 1 : std::min(args.heads, 1 + products / kProducts);
  std::vector<Item> items;
  for (const SeqSpan& span : data.spans()) {
    for (int64_t row = span.row_begin; row < span.row_begin + span.rows; ++row) {
      for (int64_t head = row % step; head < args.heads; head += step) {
        items.push_back({&span, row, head});
      }
    }
  }
  return items;
}

void check_window(const OpCheckScope& scope, const Kernel<Attention>& kernel, int64_t window,
                  OpComparison& comparison) {
  const AttentionData data(case_of(scope.model, window), scope.seed);
  const std::vector<float> got = outputs(scope, kernel, data);
  const std::vector<Item> items = items_of(data, scope.all);
  const Attention::Args& args = data.args();
  std::vector<std::vector<AttentionExpected>> expected(items.size());
  scope.tick();
  scope.pool.parallel_for(static_cast<int64_t>(items.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Item& item = items[static_cast<size_t>(i)];
      expected[static_cast<size_t>(i)] = attention_reference(args, *item.span, item.row, item.head);
    }
  });
  for (size_t i = 0; i < items.size(); ++i) {
    for (int64_t d = 0; d < args.head_dim; ++d) {
      const AttentionExpected& e = expected[i][static_cast<size_t>(d)];
      const int64_t column = items[i].head * args.head_dim + d;
      const int64_t at = items[i].row * args.heads * args.head_dim + column;
      comparison.compare({"out", -1, items[i].row, column}, got[static_cast<size_t>(at)],
                         {e.value, std::min(e.probable, e.worst)});
    }
  }
}

}  // namespace

OpCheck check_attention(const OpCheckScope& scope, const Kernel<Attention>& kernel) {
  const std::vector<int64_t>& windows = scope.model.config.windows;
  OpComparison comparison;
  for (const int64_t window : std::set<int64_t>(windows.begin(), windows.end())) {
    check_window(scope, kernel, window, comparison);
  }
  return std::move(comparison).result();
}

}  // namespace octet
