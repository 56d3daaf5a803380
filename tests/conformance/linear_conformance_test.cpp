// Every linear kernel on every problem that it does not refuse, against sums in double precision.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "num/error_bound.h"
#include "num/f8.h"
#include "tests/conformance/devices.h"
#include "tests/conformance/linear_case.h"
#include "tests/conformance/linear_run.h"

namespace octet::conformance {
namespace {

constexpr int64_t kTokens[] = {1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 33};
constexpr int64_t kManyTokens = 512;

// Seed of a case: its place in the list, so that a failure can be run again alone.
uint64_t seed_of(size_t index) {
  return 1000 + index;
}

// The largest errors seen by one kernel, as multiples of sqrt(n) * 2^-24 * sum|terms| and of the
// worst-case bound.
struct Largest {
  double probable = 0, worst = 0;
};

// Compares rows [0, m) of y with the expected values. Returns a text about the first value outside
// its bounds, or an empty one.
std::string compare(const LinearKernel& kernel, const LinearData& data,
                    const LinearReference& expected, const Output& y, Largest& largest) {
  const LinearProblem& problem = data.problem();
  const int64_t chain = longest_chain(kernel, problem);
  for (int64_t m = 0; m < y.m; ++m) {
    for (int64_t n = 0; n < problem.n; ++n) {
      const auto i = static_cast<size_t>(m * problem.n + n);
      const double exact = expected.y[i], got = y.at(m, n);
      if (!std::isfinite(exact)) {
        if (std::isnan(exact) ? std::isnan(got) : got == exact) continue;
        return fmt::format("y[{}, {}] = {}, expected {}", m, n, got, exact);
      }
      const double error = std::fabs(got - exact);
      const double probable = probable_bound(chain, expected.magnitude[i]);
      const double worst = worst_bound(chain, expected.magnitude[i]);
      if (!(error <= probable && error <= worst)) {
        return fmt::format(
            "y[{}, {}] = {:.9g}, expected {:.17g}, error {:.3g}, bounds {:.3g} "
            "(probable) and {:.3g} (worst case) for a chain of {}",
            m, n, got, exact, error, probable, worst, chain);
      }
      if (probable > 0 && error / probable * kProbableFactor > largest.probable) {
        largest.probable = error / probable * kProbableFactor;
      }
      if (worst > 0) largest.worst = std::max(largest.worst, error / worst);
    }
  }
  return {};
}

class LinearKernelTest : public ::testing::TestWithParam<const LinearKernel*> {
 protected:
  void SetUp() override {
    const LinearKernel& k = kernel();
    if (k.device != best_device().kind) GTEST_SKIP() << "needs a device that is not here";
    const Features lacking = k.needs.minus(best_device().features);
    if (!lacking.empty()) GTEST_SKIP() << "this host lacks " << to_string(lacking);
  }

  static const LinearKernel& kernel() { return *GetParam(); }

  // True when the kernel takes the case here.
  static bool takes(const LinearProblem& problem) {
    return problem.scheme == kernel().scheme && refusals(kernel(), problem, best_device()).empty();
  }
};

// Kernels of 8-bit codes.
class CodeKernelTest : public LinearKernelTest {};

// One case at one number of tokens: bounds, equal bits for 1 and 2 threads, nothing written beside
// y or behind the scratch.
std::string check_tokens(Runner& one, Runner& two, const LinearCase& c, const LinearData& data,
                         const LinearReference& expected, int64_t m, Largest& largest) {
  const Output y = one.run(data, m, c.y_pad);
  if (std::string bad = y.damage(); !bad.empty()) return bad;
  if (std::string bad = compare(one.kernel(), data, expected, y, largest); !bad.empty()) return bad;
  const Output other = two.run(data, m, c.y_pad);
  if (std::string bad = other.damage(); !bad.empty()) return "2 threads: " + bad;
  return y.same_bits(other) ? "" : "the bits of y differ between 1 and 2 threads";
}

TEST_P(LinearKernelTest, StaysUnderItsBoundAndIsTheSameForAnyThreads) {
  Runner one(kernel(), 1), two(kernel(), 2);
  Largest largest;
  int taken = 0;
  const std::vector<LinearCase>& cases = linear_cases();
  for (size_t i = 0; i < cases.size(); ++i) {
    const LinearCase& c = cases[i];
    const int64_t max_m = c.many_rows ? kManyTokens : std::end(kTokens)[-1];
    if (c.scheme != kernel().scheme) continue;
    const LinearData data(c, max_m, seed_of(i));
    if (!takes(data.problem())) continue;
    ++taken;
    const LinearReference expected = data.expected(max_m);
    std::vector<int64_t> tokens(std::begin(kTokens), std::end(kTokens));
    if (c.many_rows) tokens.push_back(kManyTokens);
    for (int64_t m : tokens) {
      const std::string bad = check_tokens(one, two, c, data, expected, m, largest);
      ASSERT_EQ(bad, "") << kernel().name << ", " << c.name << ", M=" << m << ", seed "
                         << seed_of(i);
    }
  }
  ASSERT_GT(taken, 0) << "no problem exercises " << kernel().name;
  fmt::print(
      "{}: {} problems, largest error {:.3f} * sqrt(n) * 2^-24 * sum|terms|, {:.3f} of the "
      "worst-case bound\n",
      kernel().name, taken, largest.probable, largest.worst);
  EXPECT_LE(kProbableFactor, 16 * largest.probable)
      << "the bound is too loose to find a fault of this kernel";
}

TEST_P(LinearKernelTest, ARowOfYDoesNotDependOnTheBatchWhereDeclared) {
  if (!kernel().error.batch_invariant) GTEST_SKIP() << "not declared";
  Runner runner(kernel(), 2);
  const std::vector<LinearCase>& cases = linear_cases();
  for (size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].scheme != kernel().scheme) continue;
    const int64_t max_m = cases[i].many_rows ? kManyTokens : std::end(kTokens)[-1];
    const LinearData data(cases[i], max_m, seed_of(i));
    if (!takes(data.problem())) continue;
    const Output all = runner.run(data, max_m, 0);
    for (int64_t m : kTokens) {
      const Output some = runner.run(data, m, 0);
      ASSERT_TRUE(some.same_rows(all)) << kernel().name << ", " << cases[i].name << ", M=" << m
                                       << " and M=" << max_m << ", seed " << seed_of(i);
    }
  }
}

// Row m of x is one at element m and zero elsewhere, scales are one: y is the transposed weight,
// to the bit. Codes that are not finite are left out: zero times them is NaN.
TEST_P(CodeKernelTest, DecodesEveryFiniteCodeExactlyAtEveryPosition) {
  constexpr int64_t kN = 256, kK = 70;
  for (DType dtype : {DType::F8E4M3, DType::F8E5M2}) {
    LinearCase c{.scheme = kernel().scheme, .n = kN, .k = kK, .weight = {.dtype = dtype}};
    c.values = Values::OneSign;
    if (c.scheme == SchemeId::W8A8) c.activation = QuantSpec{.dtype = DType::F8E4M3};
    if (!kernel().caps.inputs.has(c.input)) c.input = DType::BF16;
    LinearData data(c, kK, 1);
    if (!takes(data.problem())) continue;
    for (int64_t n = 0; n < kN; ++n) {
      for (int64_t k = 0; k < kK; ++k) {
        const auto code = static_cast<uint8_t>(n + 37 * k);
        data.weight_code(n, k) = std::isfinite(f8_table(dtype)[code]) ? code : uint8_t{0};
      }
    }
    for (int64_t m = 0; m < kK; ++m) {
      for (int64_t k = 0; k < kK; ++k) data.set_input(m, k, m == k ? 1.0F : 0.0F);
    }
    Runner runner(kernel(), 1);
    for (int64_t rows : {int64_t{1}, int64_t{4}, kK}) {
      const Output y = runner.run(data, rows, 0);
      for (int64_t m = 0; m < rows; ++m) {
        for (int64_t n = 0; n < kN; ++n) {
          const uint8_t code = data.weight_code(n, m);
          ASSERT_EQ(y.at(m, n), f8_table(dtype)[code])
              << kernel().name << ", " << name(dtype) << " code " << int{code} << " at k=" << m
              << ", M=" << rows;
        }
      }
    }
  }
}

// A code that is not finite spoils its row of W, at any place in K, and nothing else.
TEST_P(CodeKernelTest, KeepsCodesThatAreNotFinite) {
  struct Plant {
    DType dtype;
    uint8_t code;
  };
  for (const Plant& plant :
       {Plant{DType::F8E4M3, 0x7F}, Plant{DType::F8E4M3, 0xFF}, Plant{DType::F8E5M2, 0x7D},
        Plant{DType::F8E5M2, 0xFE}, Plant{DType::F8E5M2, 0x7F}, Plant{DType::F8E5M2, 0x7C},
        Plant{DType::F8E5M2, 0xFC}}) {
    for (const ScaleTile& tile : {ScaleTile::row(), ScaleTile::block(128, 128)}) {
      LinearCase c{.scheme = kernel().scheme,
                   .n = 37,
                   .k = 301,
                   .weight = {.dtype = plant.dtype, .tile = tile}};
      if (c.scheme == SchemeId::W8A8) {
        c.activation = QuantSpec{.dtype = DType::F8E4M3, .tile = ScaleTile::group(128)};
      }
      if (!kernel().caps.inputs.has(c.input)) c.input = DType::BF16;
      LinearData data(c, 17, 5);
      if (!takes(data.problem())) continue;
      const int64_t places[] = {0, 31, 32, 130, 255, 256, 287, 288, 299, 300};
      int64_t row = 0;
      for (int64_t k : places) data.weight_code(row += 3, k) = plant.code;
      Runner runner(kernel(), 2);
      Largest ignored;
      const LinearReference expected = data.expected(17);
      for (int64_t m : {1, 4, 9, 17}) {
        const Output y = runner.run(data, m, 0);
        ASSERT_EQ(compare(kernel(), data, expected, y, ignored), "")
            << kernel().name << ", " << name(plant.dtype) << " code " << int{plant.code}
            << ", weight " << to_string(tile) << ", M=" << m;
      }
    }
  }
}

// A value of x that is not finite spoils its row of y and no other.
TEST_P(LinearKernelTest, KeepsInputsThatAreNotFinite) {
  LinearCase c{.scheme = kernel().scheme, .n = 37, .k = 301, .weight = {.dtype = DType::BF16}};
  if (c.scheme != SchemeId::Plain) {
    const bool blocks = kernel().caps.weight_scales.has(Granularity::Block);
    c.weight = {.dtype = DType::F8E4M3,
                .tile = blocks ? ScaleTile::block(128, 128) : ScaleTile::row()};
  }
  if (c.scheme == SchemeId::W8A8) {
    c.activation = QuantSpec{.dtype = DType::F8E4M3, .tile = ScaleTile::row()};
  } else if (!kernel().caps.inputs.has(c.input)) {
    c.input = DType::BF16;
  }
  LinearData data(c, 17, 6);
  ASSERT_TRUE(takes(data.problem()));
  const float inf = std::numeric_limits<float>::infinity();
  data.set_input(0, 300, std::numeric_limits<float>::quiet_NaN());
  data.set_input(2, 0, c.activation ? 448.0F : inf);
  data.set_input(3, 31, std::numeric_limits<float>::quiet_NaN());
  data.set_input(13, 288, c.activation ? 448.0F : -inf);
  Runner runner(kernel(), 2);
  Largest ignored;
  const LinearReference expected = data.expected(17);
  for (int64_t m : {1, 3, 4, 9, 17}) {
    const Output y = runner.run(data, m, 0);
    ASSERT_EQ(compare(kernel(), data, expected, y, ignored), "") << kernel().name << ", M=" << m;
  }
}

TEST_P(LinearKernelTest, NoTokensWriteNothing) {
  for (size_t i = 0; i < linear_cases().size(); ++i) {
    const LinearCase& c = linear_cases()[i];
    if (c.scheme != kernel().scheme) continue;
    const LinearData data(c, 1, seed_of(i));
    if (!takes(data.problem())) continue;
    Runner runner(kernel(), 2);
    EXPECT_EQ(runner.run(data, 0, 3).damage(), "") << kernel().name << ", " << c.name;
    return;
  }
}

std::vector<const LinearKernel*> kernels_where(bool (*condition)(const LinearKernel&)) {
  std::vector<const LinearKernel*> found;
  for (const LinearKernel* kernel : kernels<LinearKernel>()) {
    if (condition(*kernel)) found.push_back(kernel);
  }
  return found;
}

std::string kernel_name(const ::testing::TestParamInfo<const LinearKernel*>& param) {
  return test_name(param.param->name);
}

INSTANTIATE_TEST_SUITE_P(
    All, LinearKernelTest,
    ::testing::ValuesIn(kernels_where([](const LinearKernel&) { return true; })), kernel_name);
INSTANTIATE_TEST_SUITE_P(All, CodeKernelTest,
                         ::testing::ValuesIn(kernels_where([](const LinearKernel& kernel) {
                           return kernel.scheme != SchemeId::Plain;
                         })),
                         kernel_name);

TEST(LinearProblems, NamesAreUnique) {
  std::set<std::string> names;
  for (const LinearCase& c : linear_cases()) {
    EXPECT_TRUE(names.insert(c.name).second) << c.name;
  }
}

// What a kernel may treat apart: the scheme, dtypes, and the scales of the weight and of x.
std::string kind_of(const LinearCase& c) {
  std::string kind = fmt::format("{} {}", name(c.scheme), name(c.weight.dtype));
  if (is_f8(c.weight.dtype)) kind += fmt::format("/{}", name(c.weight.tile.granularity()));
  if (!c.activation) return kind + fmt::format(" x {}", name(c.input));
  return kind +
         fmt::format(" x {}/{}", name(c.activation->dtype), name(c.activation->tile.granularity()));
}

TEST(LinearProblems, EveryKindHasAProblemWithNEqualToK) {
  std::set<std::string> kinds, square;
  for (const LinearCase& c : linear_cases()) {
    kinds.insert(kind_of(c));
    if (c.n == c.k && c.n > 1 && !c.rows) square.insert(kind_of(c));
  }
  for (const std::string& kind : kinds) EXPECT_TRUE(square.contains(kind)) << kind;
}

}  // namespace
}  // namespace octet::conformance
