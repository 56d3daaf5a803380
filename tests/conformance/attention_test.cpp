// Every attention kernel against the double reference, and its independence of batch and threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/conformance/attention_case.h"
#include "tests/conformance/op_kernels.h"

namespace octet::conformance {
namespace {

using AttentionConformance = OpTest<Attention>;
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AttentionConformance);

// The output of one call: [rows, heads * head_dim], dense.
std::vector<float> output(const Kernel<Attention>& kernel, const Attention::Problem& problem,
                          Attention::Args args, int threads) {
  const int64_t width = args.heads * args.head_dim;
  std::vector<float> out(static_cast<size_t>(args.rows * width),
                         std::numeric_limits<float>::quiet_NaN());
  args.out = out.data();
  args.out_stride = width;
  const std::unique_ptr<Device> device = make_device(threads);
  const size_t bytes = kernel.scratch_bytes != nullptr ? kernel.scratch_bytes(problem, threads) : 0;
  const Buffer scratch = device->allocate(bytes);
  if (bytes != 0) std::memset(scratch.data(), 0xFF, bytes);
  args.scratch = scratch.data();
  launch(kernel, args, *device->make_stream());
  return out;
}

TEST_P(AttentionConformance, StaysWithinBothBoundsOfTheDoubleReference) {
  double largest_ratio = 0;
  int taken = 0;
  for (const AttentionCase& c : attention_cases()) {
    const AttentionData data(c, 11);
    if (!refused(data.problem()).empty()) continue;
    ++taken;
    const std::vector<float> out = output(kernel(), data.problem(), data.args(), 2);
    const auto expected = data.expected();
    for (size_t i = 0; i < out.size(); ++i) {
      const auto& e = expected[i];
      const double error = std::fabs(out[i] - e.value);
      ASSERT_LE(error, e.probable) << kernel().name << ", " << c.name << ", element " << i
                                   << ": got " << out[i] << ", expected " << e.value;
      ASSERT_LE(error, e.worst) << kernel().name << ", " << c.name << ", element " << i;
      largest_ratio = std::max(largest_ratio, error / e.probable);
    }
  }
  EXPECT_GT(taken, 0) << kernel().name << " takes no problem";
  RecordProperty("largest_error_of_bound", std::to_string(largest_ratio));
  // Double precision inside leaves only the last rounding.
  const bool reference = kernel().preference < 100;
  EXPECT_GT(largest_ratio, reference ? 0 : 1.0 / 16) << "the bound is too wide to find faults";
}

TEST_P(AttentionConformance, GivesTheSameBitsWithAnyNumberOfThreads) {
  for (const AttentionCase& c : attention_cases()) {
    const AttentionData data(c, 12);
    if (!refused(data.problem()).empty()) continue;
    const std::vector<float> one = output(kernel(), data.problem(), data.args(), 1);
    for (int threads : {2, 3}) {
      const std::vector<float> many = output(kernel(), data.problem(), data.args(), threads);
      ASSERT_EQ(std::memcmp(one.data(), many.data(), one.size() * sizeof(float)), 0)
          << kernel().name << ", " << c.name << ", threads " << threads;
    }
  }
}

TEST_P(AttentionConformance, GivesARowTheSameBitsWhateverElseIsInTheBatch) {
  for (const AttentionCase& c : attention_cases()) {
    const AttentionData data(c, 13);
    if (!refused(data.problem()).empty()) continue;
    const std::vector<float> all = output(kernel(), data.problem(), data.args(), 2);
    const auto width = static_cast<size_t>(c.heads * c.head_dim);
    size_t row = 0;
    for (size_t s = 0; s < c.spans.size(); ++s) {
      const int32_t rows = c.spans[s].second;
      // Alone, and as chunks of 3 rows: what a scheduler with another budget would have done.
      for (int32_t first = 0; first < rows; first += 3) {
        const int32_t count = std::min(3, rows - first);
        std::vector<SeqSpan> storage;
        const Attention::Args args = data.part(s, first, count, storage);
        Attention::Problem problem = data.problem();
        problem.max_rows = count;
        problem.max_context = args.max_context;
        const std::vector<float> part = output(kernel(), problem, args, 1);
        ASSERT_EQ(std::memcmp(part.data(), all.data() + (row + static_cast<size_t>(first)) * width,
                              part.size() * sizeof(float)),
                  0)
            << kernel().name << ", " << c.name << ", span " << s << " from row " << first;
      }
      row += static_cast<size_t>(rows);
    }
  }
}

// What the plan sets aside must hold any smaller call, and stay small on large machines.
TEST_P(AttentionConformance, AsksForBoundedScratchThatGrowsWithTheProblem) {
  if (kernel().scratch_bytes == nullptr) return;
  const Attention::Problem large{32, 8, 128, DType::BF16, 512, 131072};
  EXPECT_LE(kernel().scratch_bytes(large, 256), size_t{32} << 20);
  for (int threads : {1, 2, 64}) {
    for (int64_t rows : {1, 17, 512}) {
      for (int64_t context : {1, 256, 257, 5000, 131072}) {
        Attention::Problem small = large;
        small.max_rows = rows;
        small.max_context = context;
        EXPECT_LE(kernel().scratch_bytes(small, threads), kernel().scratch_bytes(large, threads));
      }
    }
  }
}

TEST_P(AttentionConformance, LeavesOtherOutputsAlone) {
  const AttentionData data(
      {.name = "pad", .heads = 3, .kv_heads = 1, .head_dim = 10, .spans = {{5, 2}, {0, 1}}}, 14);
  if (!refused(data.problem()).empty()) return;
  const int64_t width = 30;
  const int64_t stride = width + 6;
  std::vector<float> out(static_cast<size_t>(3 * stride), 7.0F);
  Attention::Args args = data.args();
  args.out = out.data();
  args.out_stride = stride;
  const std::unique_ptr<Device> device = make_device(2);
  const size_t bytes =
      kernel().scratch_bytes != nullptr ? kernel().scratch_bytes(data.problem(), 2) : 0;
  const Buffer scratch = device->allocate(bytes);
  args.scratch = scratch.data();
  launch(kernel(), args, *device->make_stream());
  for (int64_t i = 0; i < 3 * stride; ++i) {
    EXPECT_EQ(out[static_cast<size_t>(i)] == 7.0F, i % stride >= width) << "element " << i;
  }
}

TEST_P(AttentionConformance, LetsValuesThatAreNotFiniteThrough) {
  const AttentionCase c{
      .name = "nan", .heads = 2, .kv_heads = 2, .head_dim = 16, .spans = {{20, 1}}};
  for (float poison :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const AttentionData data(c, 15);
    if (!refused(data.problem()).empty()) return;
    Attention::Args args = data.args();
    std::vector<float> q(args.q, args.q + args.q_stride);
    q[3] = poison;
    args.q = q.data();
    const std::vector<float> out = output(kernel(), data.problem(), args, 2);
    for (size_t i = 0; i < 32; ++i) {
      EXPECT_EQ(std::isfinite(out[i]), i >= 16) << kernel().name << ", element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, AttentionConformance, testing::ValuesIn(runnable<Attention>()),
                         AttentionConformance::parameter_name);

}  // namespace
}  // namespace octet::conformance
