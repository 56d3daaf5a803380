#pragma once
// How one operation is checked: arrays on the device, and results held against what they have to
// be.
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/thread_pool.h"
#include "model/model.h"
#include "op/expected.h"

namespace octet {

// What was found of one operation.
struct OpCheck {
  int64_t values = 0;   // results compared
  double worst = 0;     // largest error over its bound; 0: all equal
  std::string failure;  // of the kernel, with place, both values and the bound
  std::string reason;   // the same in a few words
};

// What a check needs beside its kernel. Thread: one check at a time.
struct OpCheckScope {
  const Model& model;
  Device& device;
  Stream& stream;
  ThreadPool& pool;  // for references
  uint64_t seed = 1;
  bool all = false;  // every result, however long that takes
  // Called every fraction of a second; what it throws ends the check.
  std::function<void()> tick = [] {};

  bool rounds_bf16() const { return model.plan.options.policy.carrier == Carrier::BF16; }
};

// Arrays of the calls of one check in device memory, freed together.
class DeviceArrays {
 public:
  explicit DeviceArrays(const OpCheckScope& scope) : device_(scope.device), stream_(scope.stream) {}

  void* bytes(size_t count);
  // A copy of `host`.
  template <class Range>
  auto* up(const Range& host) {
    using T = std::remove_cvref_t<decltype(*host.data())>;
    void* copy = bytes(host.size() * sizeof(T));
    if (!host.empty()) stream_.upload(copy, host.data(), host.size() * sizeof(T));
    return static_cast<T*>(copy);
  }
  // The first `count` elements of a device array.
  template <class T>
  std::vector<T> down(const T* device, size_t count) {
    std::vector<T> host(count);
    if (count != 0) stream_.download(host.data(), device, count * sizeof(T));
    return host;
  }

 private:
  Device& device_;
  Stream& stream_;
  std::vector<Buffer> buffers_;
};

// Where a result stands: "before_mlp of layer 3 [2, 17]".
struct OpPlace {
  std::string_view array;
  int64_t layer = -1;  // below 0: of no layer
  int64_t row = 0, column = 0;
};

// Collects an OpCheck. The worst result is the one to report.
class OpComparison {
 public:
  // Where a value that is not finite is expected, any such value will do.
  void compare(const OpPlace& place, double got, const Expected& expected);
  // Results that have no bound: ids, flags, copies.
  void equal(const OpPlace& place, double got, double expected) {
    compare(place, got, {expected, 0});
  }

  // Requires that a comparison was made.
  OpCheck result() &&;

 private:
  void fail(const OpPlace& place, double got, const Expected& expected, double ratio);

  OpCheck check_;
};

// `count` random numbers, about normal with deviation 1.
std::vector<float> random_values(int64_t count, uint64_t seed);

}  // namespace octet
