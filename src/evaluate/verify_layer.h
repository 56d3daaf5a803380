#pragma once
// One linear layer of a loaded model on random tokens, against double precision.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "model/model.h"

namespace octet {

struct LayerCheck {
  int64_t values = 0;            // outputs compared
  double worst = 0;              // largest error over its bound
  double signal = 0, noise = 0;  // sums of squares: exact outputs, errors
  double input_signal = 0;       // the same against the input before it was quantised
  double input_noise = 0;        // 0 where it is not
  std::string failure;           // of the kernel, with place, both values and the bound
  std::string reason;            // the same in a few words
  std::string quantize_failure;  // of the kernel that makes its input
};

struct LayerCheckOptions {
  bool all = false;  // every output, however long that takes
  uint64_t seed = 1;
  // Called every fraction of a second; what it throws ends the check.
  std::function<void()> tick = [] {};
};

// Runs layers one after another on one device. Thread: one caller at a time.
class LayerChecker {
 public:
  LayerChecker(Device& device, ThreadPool& pool)
      : device_(device), pool_(pool), stream_(device.make_stream()) {}

  // `record` is what `layer` was packed from.
  LayerCheck check(const Linear& layer, const QuantView& record, const LayerCheckOptions& options);

  // Numbers of tokens that a layer is run on: one, a few, and enough for a matrix product.
  static constexpr int64_t kTokens[] = {1, 5, 64};

 private:
  Device& device_;
  ThreadPool& pool_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace octet
