#pragma once
// A fixed team of threads that runs one loop at a time: the caller is thread 0, workers spin
// briefly and then sleep.
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/function_ref.h"

namespace octet {

// Owns threads - 1 workers. One caller at a time; calls do not nest.
class ThreadPool {
 public:
  // `threads` includes the caller. Requires threads >= 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(thread) once on every thread, thread in [0, threads()), and returns when all have
  // returned.
  void run(FunctionRef<void(int)> body) noexcept;

  // Calls body(begin, end) for chunks of at most `grain` items that cover [0, count); which thread
  // takes which chunk is not fixed, so a chunk must write only its own items. Runs inline when one
  // chunk covers all.
  void parallel_for(int64_t count, int64_t grain,
                    FunctionRef<void(int64_t, int64_t)> body) noexcept;

 private:
  void work(int thread) noexcept;

  std::vector<std::thread> workers_;
  const FunctionRef<void(int)>* body_ = nullptr;
  std::atomic<uint32_t> generation_{0};
  std::atomic<int> pending_{0};
  std::atomic<bool> stop_{false};
};

// Item range of thread `thread` of `threads` when `count` items are split evenly in order.
constexpr int64_t split_begin(int64_t count, int thread, int threads) {
  return count * thread / threads;
}

}  // namespace octet
