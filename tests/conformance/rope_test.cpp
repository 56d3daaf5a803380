// Every rotary-embedding kernel against the double reference: q in place, k and v in the paged
// cache.
#include <gtest/gtest.h>

#include <cstring>

#include "num/tensor.h"
#include "op/rope.h"
#include "op/rope_reference.h"
#include "tests/conformance/matrix_lists.h"
#include "tests/conformance/op_kernels.h"
#include "tests/conformance/random.h"

namespace octet::conformance {
namespace {

using RopeConformance = OpTest<Rope>;
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RopeConformance);

struct Shape {
  int64_t heads, kv_heads, head_dim, rotary_dim, block_size;
  bool interleaved = false;
};
constexpr Shape kShapes[] = {{1, 1, 2, 2, 1},          {2, 1, 10, 10, 16},     {9, 3, 64, 64, 32},
                             {4, 4, 22, 22, 7},        {4, 2, 80, 32, 16},     {8, 2, 128, 128, 32},
                             {3, 1, 100, 40, 16},      {2, 2, 48, 24, 16},     {16, 16, 16, 16, 16},
                             {2, 1, 10, 10, 16, true}, {3, 1, 64, 32, 8, true}};
std::vector<MatrixShape> shapes_of(int64_t Shape::*rows, int64_t Shape::*cols) {
  std::vector<MatrixShape> shapes;
  for (const Shape& s : kShapes) shapes.push_back({s.*rows, s.*cols});
  return shapes;
}

const DeclareMatrices kMatrices{
    {{Rope::kName, "[heads, head_dim]", [] { return shapes_of(&Shape::heads, &Shape::head_dim); }},
     {Rope::kName, "[kv_heads, block_size]",
      [] { return shapes_of(&Shape::kv_heads, &Shape::block_size); }},
     {Rope::kName, "[block_size, head_dim]",
      [] { return shapes_of(&Shape::block_size, &Shape::head_dim); }}}};

constexpr DType kTypes[] = {DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2};
constexpr int64_t kRows = 6;
constexpr int64_t kBlocks = 9;
constexpr int64_t kPositions = 40;

class Data {
 public:
  Data(const Shape& shape, DType kv_dtype, uint64_t seed) : shape_(shape), dtype_(kv_dtype) {
    Random random(seed);
    stride_ = (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
    qkv_ = random.bells(kRows * stride_);
    for (int64_t i = 0; i < kPositions * shape.rotary_dim; ++i) {
      cos_sin_.push_back(static_cast<float>(random.uniform(-1, 1)));
    }
    for (int64_t row = 0; row < kRows; ++row) {
      positions_.push_back(static_cast<int32_t>(random.below(kPositions)));
      // Distinct slots in no order.
      slots_.push_back((row * 7 + 3) % (kBlocks * shape.block_size));
    }
    cache_bytes_ = static_cast<size_t>(kBlocks * shape.kv_heads * shape.block_size *
                                       shape.head_dim * bytes_of(kv_dtype));
    k_.assign(cache_bytes_, std::byte{0xA5});
    v_ = k_;
  }

  Rope::Problem problem() const {
    return {shape_.head_dim, shape_.rotary_dim, dtype_, shape_.interleaved};
  }

  Rope::Args args() {
    Rope::Args a;
    a.q = qkv_.data();
    a.k = qkv_.data() + shape_.heads * shape_.head_dim;
    a.v = a.k + shape_.kv_heads * shape_.head_dim;
    a.q_stride = a.k_stride = a.v_stride = stride_;
    a.positions = positions_.data();
    a.cos_sin = cos_sin_.data();
    a.slots = slots_.data();
    a.k_cache = k_.data();
    a.v_cache = v_.data();
    a.kv_dtype = dtype_;
    a.block_size = shape_.block_size;
    a.rows = kRows;
    a.heads = shape_.heads;
    a.kv_heads = shape_.kv_heads;
    a.head_dim = shape_.head_dim;
    a.rotary_dim = shape_.rotary_dim;
    a.interleaved = shape_.interleaved;
    return a;
  }

  float qkv(int64_t row, int64_t head, int64_t d) const {
    return qkv_[static_cast<size_t>(row * stride_ + head * shape_.head_dim + d)];
  }

  // Head `head` of q, k and v counted through, before the rotation.
  Expected rotated(const Rope::Args& args, int64_t row, int64_t head, int64_t d) const {
    return rotated_reference(
        args, qkv_.data() + row * stride_ + head * shape_.head_dim,
        cos_sin_.data() + positions_[static_cast<size_t>(row)] * shape_.rotary_dim, d);
  }

  // Stored element of row `row`, KV head `head`; `of_k` picks the cache.
  double stored(bool of_k, int64_t row, int64_t head, int64_t d) const {
    const int64_t slot = slots_[static_cast<size_t>(row)];
    const int64_t at = ((slot / shape_.block_size * shape_.kv_heads + head) * shape_.block_size +
                        slot % shape_.block_size) *
                           shape_.head_dim +
                       d;
    return element({of_k ? k_.data() : v_.data(), dtype_, {}, 0}, at);
  }

  int64_t bytes_written() const {
    int64_t count = 0;
    for (const auto* cache : {&k_, &v_}) {
      for (std::byte b : *cache) count += static_cast<int64_t>(b != std::byte{0xA5});
    }
    return count;
  }

  const Shape& shape() const { return shape_; }
  const std::vector<std::byte>& k() const { return k_; }
  const std::vector<std::byte>& v() const { return v_; }
  const std::vector<float>& all_qkv() const { return qkv_; }
  int64_t stride() const { return stride_; }

 private:
  Shape shape_;
  DType dtype_;
  int64_t stride_ = 0;
  size_t cache_bytes_ = 0;
  std::vector<float> qkv_, cos_sin_;
  std::vector<int32_t> positions_;
  std::vector<int64_t> slots_;
  std::vector<std::byte> k_, v_;
};

template <class F>
void each_problem(const RopeConformance&, F f) {
  for (const Shape& shape : kShapes) {
    for (DType dtype : kTypes) f(shape, dtype);
  }
}

TEST_P(RopeConformance, RotatesQInPlaceWithinBound) {
  each_problem(*this, [&](const Shape& shape, DType dtype) {
    Data data(shape, dtype, 31);
    const Data before(shape, dtype, 31);
    if (!refused(data.problem()).empty()) return;
    run_on(kernel(), data.args(), 2);
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t h = 0; h < shape.heads; ++h) {
        for (int64_t d = 0; d < shape.head_dim; ++d) {
          const Expected e = before.rotated(data.args(), row, h, d);
          ASSERT_NEAR(data.qkv(row, h, d), e.value, e.bound)
              << kernel().name << ", head_dim " << shape.head_dim << ", element " << d;
        }
      }
      for (int64_t h = shape.heads; h < shape.heads + 2 * shape.kv_heads; ++h) {
        for (int64_t d = 0; d < shape.head_dim; ++d) {
          ASSERT_EQ(data.qkv(row, h, d), before.qkv(row, h, d)) << "k and v must stay as they are";
        }
      }
    }
  });
}

TEST_P(RopeConformance, WritesRotatedKeysAndPlainValuesToTheirSlots) {
  each_problem(*this, [&](const Shape& shape, DType dtype) {
    for (bool scaled : {false, true}) {
      Data data(shape, dtype, 32);
      if (!refused(data.problem()).empty()) return;
      Rope::Args args = data.args();
      args.k_scale = scaled ? 0.013F : 1.0F;
      args.v_scale = scaled ? 0.029F : 1.0F;
      run_on(kernel(), args, 2);
      for (int64_t row = 0; row < kRows; ++row) {
        for (int64_t h = 0; h < shape.kv_heads; ++h) {
          for (int64_t d = 0; d < shape.head_dim; ++d) {
            const Expected k =
                cached_reference(args, data.rotated(args, row, shape.heads + h, d), args.k_scale);
            ASSERT_NEAR(data.stored(true, row, h, d), k.value, k.bound) << kernel().name;
            const float v = data.qkv(row, shape.heads + shape.kv_heads + h, d);
            ASSERT_EQ(data.stored(false, row, h, d), as_stored(dtype, v / args.v_scale))
                << kernel().name << ", " << name(dtype) << ", value " << v;
          }
        }
      }
    }
  });
}

TEST_P(RopeConformance, WritesNothingButItsSlots) {
  each_problem(*this, [&](const Shape& shape, DType dtype) {
    Data data(shape, dtype, 33);
    if (!refused(data.problem()).empty()) return;
    run_on(kernel(), data.args(), 2);
    EXPECT_LE(data.bytes_written(), 2 * kRows * shape.kv_heads * shape.head_dim * bytes_of(dtype));
  });
}

TEST_P(RopeConformance, RoundsQAndKToBfloat16WhenAsked) {
  const Shape shape{4, 2, 80, 32, 16};
  Data data(shape, DType::F32, 34);
  const Data before(shape, DType::F32, 34);
  if (!refused(data.problem()).empty()) return;
  Rope::Args args = data.args();
  args.round_bf16 = true;
  run_on(kernel(), args, 2);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t h = 0; h < shape.heads + shape.kv_heads; ++h) {
      for (int64_t d = 0; d < shape.head_dim; ++d) {
        const Expected e = before.rotated(args, row, h, d);
        const double got =
            h < shape.heads ? data.qkv(row, h, d) : data.stored(true, row, h - shape.heads, d);
        ASSERT_NEAR(got, e.value, e.bound);
      }
    }
  }
}

TEST_P(RopeConformance, GivesARowTheSameBitsWhateverThreadsAndBatch) {
  each_problem(*this, [&](const Shape& shape, DType dtype) {
    Data all(shape, dtype, 35);
    if (!refused(all.problem()).empty()) return;
    run_on(kernel(), all.args(), 3);
    Data single(shape, dtype, 35);
    for (int64_t row = 0; row < kRows; ++row) {
      Rope::Args args = single.args();
      args.q += row * single.stride();
      args.k += row * single.stride();
      args.v += row * single.stride();
      args.positions += row;
      args.slots += row;
      args.rows = 1;
      run_on(kernel(), args, 1);
    }
    EXPECT_EQ(all.k(), single.k());
    EXPECT_EQ(all.v(), single.v());
    EXPECT_EQ(all.all_qkv(), single.all_qkv());
  });
}

INSTANTIATE_TEST_SUITE_P(Kernels, RopeConformance, testing::ValuesIn(runnable<Rope>()),
                         RopeConformance::parameter_name);

}  // namespace
}  // namespace octet::conformance
