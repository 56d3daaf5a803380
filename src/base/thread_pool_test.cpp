#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <vector>

#include "base/error.h"

namespace octet {
namespace {

TEST(ThreadPool, CallsTheBodyOnceOnEveryThread) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    std::vector<int> calls(static_cast<size_t>(threads), 0);
    for (int round = 0; round < 100; ++round) {
      pool.run([&](int thread) { ++calls[static_cast<size_t>(thread)]; });
    }
    EXPECT_EQ(calls, std::vector<int>(static_cast<size_t>(threads), 100));
  }
}

TEST(ThreadPool, CoversEveryItemOnceInChunksOfTheGrain) {
  ThreadPool pool(3);
  for (int64_t count : {0, 1, 2, 7, 100, 1001}) {
    for (int64_t grain : {1, 3, 100, 5000}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
      std::atomic<int64_t> longest{0};
      pool.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
        if (end - begin > longest) longest = end - begin;
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
      for (const auto& times : seen) EXPECT_EQ(times, 1);
      EXPECT_LE(longest, grain);
    }
  }
}

TEST(ThreadPool, MakesWritesOfTheBodyVisibleToTheCaller) {
  ThreadPool pool(4);
  std::vector<int64_t> values(1000);
  for (int64_t round = 1; round <= 200; ++round) {
    pool.parallel_for(1000, 10, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>(i)] = round;
    });
    ASSERT_EQ(std::accumulate(values.begin(), values.end(), int64_t{0}), round * 1000);
  }
}

TEST(ThreadPool, WakesThreadsThatWentToSleep) {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    // Far longer than workers spin before they sleep.
    volatile int64_t idle = 0;
    for (int i = 0; i < 3000000; ++i) idle = idle + 1;
    std::atomic<int> calls{0};
    pool.run([&](int) { ++calls; });
    EXPECT_EQ(calls, 2);
  }
}

TEST(ThreadPool, RefusesATeamOfNobody) {
  EXPECT_THROW(ThreadPool(0), Error);
}

TEST(SplitBegin, SplitsEvenlyInOrder) {
  EXPECT_EQ(split_begin(10, 0, 3), 0);
  EXPECT_EQ(split_begin(10, 1, 3), 3);
  EXPECT_EQ(split_begin(10, 2, 3), 6);
  EXPECT_EQ(split_begin(10, 3, 3), 10);
  EXPECT_EQ(split_begin(1, 1, 2), 0);
}

}  // namespace
}  // namespace octet
