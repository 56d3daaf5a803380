#include "base/thread_pool.h"

#include <algorithm>

#include "base/error.h"

namespace octet {
namespace {

// Spins before a thread sleeps: about 20 us, longer than the gap between two operations of a decode
// step.
constexpr int kSpins = 4000;

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  OCTET_CHECK(threads >= 1, "threads = {}", threads);
  workers_.reserve(static_cast<size_t>(threads - 1));
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  generation_.fetch_add(1);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(FunctionRef<void(int)> body) noexcept {
  if (workers_.empty()) {
    body(0);
    return;
  }
  body_ = &body;
  pending_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  body(0);
  for (int spins = 0;; ++spins) {
    const int left = pending_.load(std::memory_order_acquire);
    if (left == 0) return;
    if (spins < kSpins) {
      relax();
    } else {
      pending_.wait(left, std::memory_order_acquire);
    }
  }
}

void ThreadPool::parallel_for(int64_t count, int64_t grain,
                              FunctionRef<void(int64_t, int64_t)> body) noexcept {
  if (count <= 0) return;
  if (count <= grain || workers_.empty()) {
    body(0, count);
    return;
  }
  std::atomic<int64_t> next{0};
  run([&](int) {
    for (;;) {
      const int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= count) return;
      body(begin, std::min(begin + grain, count));
    }
  });
}

void ThreadPool::work(int thread) noexcept {
  uint32_t seen = 0;
  for (;;) {
    for (int spins = 0; generation_.load(std::memory_order_acquire) == seen; ++spins) {
      if (spins < kSpins) {
        relax();
      } else {
        generation_.wait(seen, std::memory_order_acquire);
      }
    }
    seen = generation_.load(std::memory_order_acquire);
    if (stop_.load()) return;
    (*body_)(thread);
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
  }
}

}  // namespace octet
