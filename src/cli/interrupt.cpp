#include "cli/interrupt.h"

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace octet {
namespace {

// Written by the signal handler, so it must be lock-free to be safe there.
std::atomic<bool> interrupt_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void note_interrupt(int) {
  interrupt_flag.store(true, std::memory_order_relaxed);
}

}  // namespace

std::atomic<bool>& InterruptScope::flag() {
  return interrupt_flag;
}

InterruptScope::InterruptScope() : before_flag_(interrupted()) {
  clear();
  struct sigaction action = {};
  action.sa_handler = note_interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0;  // no SA_RESTART: a read that waits for input must return
  if (sigaction(SIGINT, &action, &before_) != 0) {
    throw_error(Code::Environment, fmt::format("cannot handle SIGINT: {}", std::strerror(errno)));
  }
}

InterruptScope::~InterruptScope() {
  sigaction(SIGINT, &before_, nullptr);
  interrupt_flag.store(before_flag_, std::memory_order_relaxed);
}

}  // namespace octet
