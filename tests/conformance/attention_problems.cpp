// The problem list of attention.
#include <fmt/format.h>

#include "tests/conformance/attention_case.h"
#include "tests/conformance/matrix_lists.h"

namespace octet::conformance {
namespace {

// Head shapes of real models and ragged ones: (heads, kv_heads, head_dim).
struct Heads {
  int64_t heads, kv_heads, head_dim;
};
constexpr Heads kHeads[] = {{1, 1, 1},   {2, 1, 10},  {4, 4, 22},  {9, 3, 64},  {6, 2, 80},
                            {8, 1, 128}, {5, 5, 100}, {16, 2, 32}, {2, 2, 256}, {16, 16, 16}};

std::vector<MatrixShape> shapes_of(int64_t AttentionCase::*rows, int64_t AttentionCase::*cols) {
  std::vector<MatrixShape> shapes;
  for (const AttentionCase& c : attention_cases()) shapes.push_back({c.*rows, c.*cols});
  return shapes;
}

using Case = AttentionCase;
const DeclareMatrices kMatrices{{{Attention::kName, "[heads, head_dim]",
                                  [] { return shapes_of(&Case::heads, &Case::head_dim); }},
                                 {Attention::kName, "[kv_heads, block_size]",
                                  [] { return shapes_of(&Case::kv_heads, &Case::block_size); }},
                                 {Attention::kName, "[block_size, head_dim]",
                                  [] { return shapes_of(&Case::block_size, &Case::head_dim); }}}};

}  // namespace

std::vector<AttentionCase> attention_cases() {
  std::vector<AttentionCase> list;
  const auto add = [&](AttentionCase c) {
    c.name =
        fmt::format("{}: heads {}/{}x{} kv {} block {} window {} spread {} spans", c.name, c.heads,
                    c.kv_heads, c.head_dim, name(c.kv_dtype), c.block_size, c.window, c.spread);
    for (const auto& [context, rows] : c.spans) c.name += fmt::format(" {}+{}", context, rows);
    list.push_back(std::move(c));
  };
  for (const Heads& h : kHeads) {
    for (DType dtype : {DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2}) {
      const float scale = is_f8(dtype) ? 0.037F : 1.0F;
      add({.name = "heads",
           .heads = h.heads,
           .kv_heads = h.kv_heads,
           .head_dim = h.head_dim,
           .spans = {{0, 1}, {37, 1}, {0, 5}, {19, 3}},
           .kv_dtype = dtype,
           .k_scale = scale,
           .v_scale = 2 * scale});
    }
  }
  // Contexts at and around the edges of KV splits, decode and prefill.
  for (int32_t context : {254, 255, 256, 257, 511, 512, 1030}) {
    add({.name = "split",
         .heads = 4,
         .kv_heads = 2,
         .head_dim = 32,
         .spans = {{context, 1}, {3, 1}}});
    add({.name = "split", .heads = 4, .kv_heads = 2, .head_dim = 32, .spans = {{context - 3, 6}}});
  }
  // Windows shorter and longer than a block, a split and the context.
  for (int64_t window : {1, 2, 16, 100, 256, 300, 5000}) {
    add({.name = "window",
         .heads = 4,
         .kv_heads = 2,
         .head_dim = 24,
         .spans = {{0, 20}, {700, 1}, {301, 4}},
         .window = window,
         .kv_dtype = DType::BF16});
  }
  for (int64_t block : {1, 7, 32, 64, 300}) {
    add({.name = "block",
         .heads = 3,
         .kv_heads = 3,
         .head_dim = 16,
         .spans = {{100, 1}, {0, 70}, {31, 1}, {64, 9}},
         .block_size = block});
  }
  // Many rows: several row tiles, decode and prefill side by side.
  add({.name = "mix",
       .heads = 6,
       .kv_heads = 2,
       .head_dim = 64,
       .spans = {{200, 1}, {0, 130}, {5, 1}, {290, 40}, {1, 1}},
       .block_size = 32,
       .kv_dtype = DType::BF16});
  for (double spread : {0.0, 8.0, 60.0}) {
    add({.name = "spread",
         .heads = 2,
         .kv_heads = 1,
         .head_dim = 64,
         .spans = {{600, 2}, {40, 1}},
         .spread = spread});
  }
  add({.name = "one sign",
       .heads = 2,
       .kv_heads = 1,
       .head_dim = 128,
       .spans = {{1500, 1}, {20, 3}},
       .one_sign = true});
  return list;
}

}  // namespace octet::conformance
