#pragma once
// Paged attention: grouped heads, causal, optional sliding window; decode, a prefill chunk and a
// mix are the same call.
#include "num/kv_spec.h"
#include "op/catalog.h"

namespace octet {

// One sequence's part of a batch. Rows are consecutive in the batch; the keys and values of all
// `context + rows` tokens are in the cache when attention runs. Row r of the span is token context
// + r and sees tokens [0, context + r].
struct SeqSpan {
  int32_t row_begin = 0;  // first row in the batch
  int32_t rows = 0;       // new tokens of this step
  int32_t context = 0;    // tokens before them
  int32_t table = 0;      // row of block_tables
};

// softmax(q k^T * scale) v for every row and head of a batch.
struct Attention {
  static constexpr std::string_view kName = "attention";

  struct Problem {
    int64_t heads = 0;
    int64_t kv_heads = 0;  // divides heads
    int64_t head_dim = 0;
    DType kv_dtype = DType::BF16;
    int64_t max_rows = 0;     // rows of one call
    int64_t max_context = 0;  // tokens of one sequence, new ones included
  };

  struct Caps {
    EnumSet<DType> kv_dtypes;
    int64_t head_dim_multiple = 1;
    int64_t max_head_dim = 1024;
  };

  struct Args {
    const float* q = nullptr;  // [rows, heads, head_dim], rows q_stride elements apart
    int64_t q_stride = 0;
    const void* k_cache = nullptr;  // this layer's [blocks, kv_heads, block_size, head_dim], KvSpec
    const void* v_cache = nullptr;
    DType kv_dtype = DType::BF16;
    int64_t block_size = 0;          // tokens
    const SeqSpan* spans = nullptr;  // [span_count]
    int64_t span_count = 0;
    const int32_t* block_tables = nullptr;  // [sequences, table_stride] block numbers
    int64_t table_stride = 0;
    int64_t rows = 0;         // of the whole batch
    int64_t max_context = 0;  // largest context + rows of a span
    int64_t heads = 0, kv_heads = 0, head_dim = 0;
    int64_t window = 0;              // a row sees its last `window` tokens, itself included; 0: all
    float scale = 1;                 // of the logits
    float k_scale = 1, v_scale = 1;  // stored value * scale = key, value
    float* out = nullptr;            // [rows, heads * head_dim]
    int64_t out_stride = 0;
    void* scratch = nullptr;
  };
};

// Tokens of one KV split: partial results are made per split and merged in order, so the sums
// depend on neither threads nor batch.
inline constexpr int64_t kKvSplit = 256;

void judge(const Attention::Caps& caps, const Attention::Problem& problem,
           std::vector<Refusal>& out);

}  // namespace octet
