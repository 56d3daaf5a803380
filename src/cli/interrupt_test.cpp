#include "cli/interrupt.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "base/error.h"

namespace octet {
namespace {

int outer_calls = 0;
void outer_handler(int) {
  ++outer_calls;
}

TEST(Interrupt, SetsTheFlagInsteadOfEndingTheProcess) {
  InterruptScope scope;
  EXPECT_FALSE(InterruptScope::interrupted());
  std::raise(SIGINT);
  EXPECT_TRUE(InterruptScope::interrupted());
  EXPECT_TRUE(InterruptScope::flag());
  InterruptScope::clear();
  EXPECT_FALSE(InterruptScope::interrupted());
  std::raise(SIGINT);
  EXPECT_TRUE(InterruptScope::interrupted());
}

TEST(Interrupt, ASecondCtrlCDoesNotWaitWhereCommandsCompute) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const InterruptScope scope(InterruptScope::Signals::AnyEnd);
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      ::testing::ExitedWithCode(130), "");
  // In a chat the outer scope is such a one, that of an answer is not.
  const InterruptScope outer(InterruptScope::Signals::AnyEnd);
  const InterruptScope answer;
  std::raise(SIGINT);
  std::raise(SIGINT);
  EXPECT_TRUE(InterruptScope::interrupted());
}

TEST(Interrupt, GivesTheFormerHandlerBack) {
  struct sigaction mine = {};
  struct sigaction before = {};
  mine.sa_handler = outer_handler;
  sigaction(SIGINT, &mine, &before);
  outer_calls = 0;
  {
    InterruptScope scope;
    std::raise(SIGINT);
    EXPECT_EQ(outer_calls, 0);
  }
  std::raise(SIGINT);
  EXPECT_EQ(outer_calls, 1);
  EXPECT_FALSE(InterruptScope::interrupted());
  sigaction(SIGINT, &before, nullptr);
}

TEST(Interrupt, TakesOtherEndsOnlyWhenAskedTo) {
  struct sigaction mine = {};
  mine.sa_handler = outer_handler;
  for (const int signal : {SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    sigaction(signal, &mine, &before);
    outer_calls = 0;
    {
      InterruptScope scope;
      std::raise(signal);
      EXPECT_EQ(outer_calls, 1);
      EXPECT_FALSE(InterruptScope::interrupted());
    }
    {
      InterruptScope scope(InterruptScope::Signals::AnyEnd);
      std::raise(signal);
      EXPECT_EQ(outer_calls, 1);
      EXPECT_TRUE(InterruptScope::interrupted());
    }
    std::raise(signal);
    EXPECT_EQ(outer_calls, 2);
    sigaction(signal, &before, nullptr);
  }
}

TEST(Interrupt, AnEndStaysAskedForUntilTheOutermostScopeIsGone) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    {
      InterruptScope outer(InterruptScope::Signals::AnyEnd);
      EXPECT_FALSE(InterruptScope::ended());
      {
        InterruptScope inner;
        std::raise(SIGINT);
        EXPECT_FALSE(InterruptScope::ended());
        std::raise(signal);
      }
      EXPECT_TRUE(InterruptScope::ended());
      EXPECT_TRUE(InterruptScope::interrupted());
      const InterruptScope next;
      InterruptScope::clear();
      EXPECT_TRUE(InterruptScope::interrupted());
      pollfd waiting{InterruptScope::wake_descriptor(), POLLIN, 0};
      EXPECT_EQ(poll(&waiting, 1, 0), 1);
    }
    EXPECT_FALSE(InterruptScope::ended());
    EXPECT_FALSE(InterruptScope::interrupted());
  }
}

TEST(Interrupt, CheckThrowsOnlyAfterASignal) {
  InterruptScope scope;
  EXPECT_NO_THROW(InterruptScope::check("nothing was made"));
  std::raise(SIGINT);
  try {
    InterruptScope::check("nothing was made");
    FAIL() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::Interrupted);
    EXPECT_EQ(error.message(), "interrupted; nothing was made");
  }
}

TEST(Interrupt, LeavesIgnoredEndsIgnored) {
  struct sigaction ignore = {};
  struct sigaction before = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGHUP, &ignore, &before);
  {
    InterruptScope scope(InterruptScope::Signals::AnyEnd);
    std::raise(SIGHUP);
    EXPECT_FALSE(InterruptScope::interrupted());
  }
  sigaction(SIGHUP, &before, nullptr);
}

TEST(Interrupt, NestedScopesDoNotMixTheirInterrupts) {
  InterruptScope outer;
  std::raise(SIGINT);
  {
    InterruptScope inner;
    EXPECT_FALSE(InterruptScope::interrupted());
  }
  EXPECT_TRUE(InterruptScope::interrupted());
  InterruptScope::clear();
  {
    InterruptScope inner;
    std::raise(SIGINT);
  }
  EXPECT_FALSE(InterruptScope::interrupted());
}

bool readable(int descriptor) {
  pollfd waiting{descriptor, POLLIN, 0};
  return poll(&waiting, 1, 0) == 1;
}

TEST(Interrupt, MakesItsDescriptorReadableWhileInterrupted) {
  InterruptScope outer;
  const int wake = InterruptScope::wake_descriptor();
  EXPECT_FALSE(readable(wake));
  for (int i = 0; i < 100; ++i) std::raise(SIGINT);
  EXPECT_TRUE(readable(wake));
  {
    InterruptScope inner;
    EXPECT_FALSE(readable(wake));
  }
  EXPECT_TRUE(readable(wake));
  InterruptScope::clear();
  EXPECT_FALSE(readable(wake));
}

TEST(Interrupt, WakesABlockedRead) {
  InterruptScope scope;
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const pthread_t reader = pthread_self();
  std::atomic<bool> done{false};
  // Signals until the read has returned: the first may come before it blocks.
  std::thread sender([&] {
    while (!done) {
      pthread_kill(reader, SIGINT);
      std::this_thread::yield();
    }
  });
  char byte = 0;
  const ssize_t got = read(fds[0], &byte, 1);
  const int error = errno;
  done = true;
  sender.join();
  EXPECT_EQ(got, -1);
  EXPECT_EQ(error, EINTR);
  EXPECT_TRUE(InterruptScope::interrupted());
  close(fds[0]);
  close(fds[1]);
}

}  // namespace
}  // namespace octet
