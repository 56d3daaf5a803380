#pragma once
// The account of a checkpoint's tensors: each is used exactly once, or skipped for a printed
// reason.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint.h"

namespace octet {

// One account per load. Not thread-safe. Must not outlive the checkpoint.
class TensorUse {
 public:
  explicit TensorUse(const Checkpoint& checkpoint);

  // Counts one use. Throws BadInput when the checkpoint has no such tensor.
  void use(std::string_view name);
  // Puts a tensor on the skip list, e.g. a tied head that equals the embedding. Throws as use().
  void skip(std::string_view name, std::string_view reason);

  // Puts what is known to be useless on the skip list (rotary inv_freq, KV and output scales, zero
  // points, extra prediction layers), then throws BadInput listing every tensor that was not used,
  // or used twice.
  void finish();

  // Every tensor that finish() found not used; its message names the first few.
  const std::vector<std::string_view>& unused() const { return unused_; }

  // The skip list after finish(), one line per reason: "2 tensors skipped: ... (first name, ...)".
  std::vector<std::string> skipped() const;

 private:
  struct Skipped {
    std::string reason;
    std::vector<std::string_view> names;
  };
  size_t index(std::string_view name) const;
  void add_skip(size_t index, std::string_view reason);

  const Checkpoint* checkpoint_;
  std::vector<uint8_t> uses_;  // per entry of checkpoint.tensors(); kSkipped on the skip list
  std::vector<Skipped> skipped_;
  std::vector<std::string_view> unused_;
};

}  // namespace octet
