#pragma once
// The mark of values that are not finite, set by any thread.
#include <atomic>
#include <cstdint>

namespace octet::cpu {

// flag = min(flag, tag). Rows of one flag may be on several threads; all write the same tag.
inline void mark_not_finite(int32_t& flag, int32_t tag) {
  const std::atomic_ref<int32_t> shared(flag);
  int32_t seen = shared.load(std::memory_order_relaxed);
  while (seen > tag && !shared.compare_exchange_weak(seen, tag, std::memory_order_relaxed)) {
  }
}

}  // namespace octet::cpu
