// What must hold for the records of every kernel, whatever operation they are of.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "op/absmax.h"
#include "op/attention.h"
#include "op/gather.h"
#include "op/linear.h"
#include "op/norm.h"
#include "op/pointwise.h"
#include "op/quantize.h"
#include "op/rope.h"
#include "op/sample.h"
#include "tests/conformance/matrix_lists.h"

namespace octet::conformance {
namespace {

// What every record says, whatever its type.
struct Facts {
  std::string name, operation;
  DeviceKind device;
  int preference;
  Features needs;
  std::string scheme;  // of linear kernels; empty for others
};

template <class Op>
void collect(std::vector<Facts>& all) {
  for (const Kernel<Op>* k : kernels<Kernel<Op>>()) {
    all.push_back(
        {std::string(k->name), std::string(Op::kName), k->device, k->preference, k->needs, ""});
  }
}

template <class... Ops>
void collect_all(std::vector<Facts>& all) {
  (collect<Ops>(all), ...);
}

std::vector<Facts> all_kernels() {
  std::vector<Facts> all;
  for (const LinearKernel* k : kernels<LinearKernel>()) {
    all.push_back({std::string(k->name), "linear", k->device, k->preference, k->needs,
                   std::string(name(k->scheme))});
  }
  collect_all<Attention, Gather, RmsNorm, SiluMul, RoundBf16, Quantize, Rope, ArgMax, TopK, LogProb,
              Sample, AbsMax>(all);
  return all;
}

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

TEST(Catalog, NamesAreUnique) {
  std::set<std::string> names;
  for (const Facts& k : all_kernels()) EXPECT_TRUE(names.insert(k.name).second) << k.name;
}

TEST(Catalog, PreferencesAreUniquePerOperationAndDevice) {
  std::map<std::tuple<std::string, DeviceKind, int>, std::string> taken;
  for (const Facts& k : all_kernels()) {
    const auto [other, first] = taken.try_emplace({k.operation, k.device, k.preference}, k.name);
    EXPECT_TRUE(first) << k.name << " and " << other->second << " both say " << k.preference;
  }
}

// "<device>.<operation>.<isa>", or "<device>.linear.<scheme>.<weight>.<isa>".
TEST(Catalog, NamePartsMatchTheRecord) {
  for (const Facts& k : all_kernels()) {
    const std::vector<std::string> parts = parts_of(k.name);
    ASSERT_EQ(parts.size(), k.operation == "linear" ? 5U : 3U) << k.name;
    EXPECT_EQ(parts[0], name(k.device)) << k.name;
    EXPECT_EQ(parts[1], k.operation) << k.name;
    EXPECT_EQ(k.operation == "linear" ? parts[2] : "", k.scheme) << k.name;
    const std::string& isa = parts.back();
    if (k.device == DeviceKind::Cpu) {
      EXPECT_EQ(isa.starts_with("avx2"),
                k.needs.has(Feature::Avx2) && !k.needs.has(Feature::Avx512))
          << k.name;
      EXPECT_EQ(isa.starts_with("avx512"), k.needs.has(Feature::Avx512)) << k.name;
      EXPECT_EQ(isa == "ref", k.needs.empty()) << k.name;
      EXPECT_EQ(isa == "ref", k.preference < 100) << k.name;
    }
  }
}

// Where rows and columns are equal in number, exchanging them shows in the values alone.
TEST(Catalog, EveryOperationIsRunOnASquareOfEachOfItsMatrices) {
  for (const Facts& k : all_kernels()) {
    const std::string operation = k.scheme.empty() ? k.operation : k.operation + " " + k.scheme;
    int lists = 0;
    for (const MatrixList& list : matrix_lists()) {
      if (list.operation != operation) continue;
      ++lists;
      const std::vector<MatrixShape> shapes = list.shapes();
      EXPECT_TRUE(std::any_of(shapes.begin(), shapes.end(),
                              [](const MatrixShape& s) { return s.rows == s.cols && s.rows > 1; }))
          << operation << " has no square " << list.matrix;
    }
    EXPECT_GT(lists, 0) << "no suite declares the matrices of " << operation;
  }
}

}  // namespace
}  // namespace octet::conformance
