#include "cli/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/atomic_folder.h"
#include "base/error.h"

namespace octet {
namespace {

// Written by the signal handler, so it must be lock-free to be safe there.
std::atomic<bool> interrupt_flag{false};
std::atomic<bool> end_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);

int depth = 0;  // scopes that live

// The ends of a pipe that holds a byte while the flag is set; made by the first scope, never
// closed.
int wake_read = -1;
int wake_write = -1;

// Whether a second Ctrl-C ends the process.
std::atomic<bool> insists{false};

void note_interrupt(int signal) {
  const int error = errno;
  if (signal != SIGINT) end_flag.store(true, std::memory_order_relaxed);
  interrupt_flag.store(true, std::memory_order_relaxed);
  // A full pipe is readable already, so a failed write changes nothing.
  [[maybe_unused]] const ssize_t written = write(wake_write, "", 1);
  errno = error;
}

void handle_signal(int signal) {
  if (signal == SIGINT && interrupt_flag.load(std::memory_order_relaxed) &&
      insists.load(std::memory_order_relaxed)) {
    remove_unfinished_folders();
    _exit(exit_status(Code::Interrupted));
  }
  note_interrupt(signal);
}

void make_pipe() {
  if (wake_read >= 0) return;
  int ends[2];
  if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) {
    throw_error(Code::Environment, fmt::format("cannot make a pipe: {}", std::strerror(errno)),
                "`ulimit -n` shows how many files a program may open");
  }
  wake_read = ends[0];
  wake_write = ends[1];
}

}  // namespace

const std::atomic<bool>& InterruptScope::flag() {
  return interrupt_flag;
}

int InterruptScope::wake_descriptor() {
  return wake_read;
}

bool InterruptScope::ended() {
  return end_flag.load(std::memory_order_relaxed);
}

void InterruptScope::check(std::string_view outcome) {
  if (interrupted()) throw_error(Code::Interrupted, fmt::format("interrupted; {}", outcome));
}

void InterruptScope::clear() {
  interrupt_flag.store(false, std::memory_order_relaxed);
  char bytes[64];
  while (read(wake_read, bytes, sizeof bytes) > 0) {
  }
  if (ended()) note_interrupt(SIGINT);
}

InterruptScope::InterruptScope(Signals signals)
    : before_flag_(interrupted()), before_insists_(insists) {
  make_pipe();
  clear();
  ++depth;
  handle(handlers_[0], SIGINT);
  insists = signals == Signals::AnyEnd;
  if (signals == Signals::CtrlC) return;
  handle(handlers_[1], SIGTERM);
  handle(handlers_[2], SIGHUP);
}

void InterruptScope::handle(Handler& handler, int signal) {
  struct sigaction action = {};
  action.sa_handler = handle_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0;  // no SA_RESTART: a read that waits for input must return
  if (sigaction(signal, nullptr, &handler.before) == 0) {
    if (signal != SIGINT && handler.before.sa_handler == SIG_IGN) return;
    if (sigaction(signal, &action, nullptr) == 0) {
      handler.signal = signal;
      return;
    }
  }
  const int error = errno;
  restore();
  --depth;
  throw_error(Code::Environment,
              fmt::format("cannot handle signal {}: {}", signal, std::strerror(error)));
}

void InterruptScope::restore() noexcept {
  for (const Handler& handler : handlers_) {
    if (handler.signal != 0) sigaction(handler.signal, &handler.before, nullptr);
  }
}

InterruptScope::~InterruptScope() {
  restore();
  insists = before_insists_;
  if (--depth == 0) end_flag.store(false, std::memory_order_relaxed);
  clear();
  if (before_flag_) note_interrupt(SIGINT);
}

}  // namespace octet
