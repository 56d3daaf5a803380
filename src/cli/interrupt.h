#pragma once
// Ctrl-C as a question the program asks, instead of its death.
#include <signal.h>

#include <array>
#include <atomic>
#include <string_view>

namespace octet {

// While one lives, SIGINT sets a flag and interrupts blocking system calls (EINTR) instead of
// ending the process; the handler that was there before returns with the destructor. Scopes nest:
// a new one begins without an interrupt, and the outer one does not see the inner one's.
// AnyEnd does the same with SIGTERM and SIGHUP, which ask the program to end: that stays asked, and
// interrupted() true, until the outermost scope is gone. Where the process was started to ignore
// one of these two (nohup), it still does. A second Ctrl-C that comes before the first was answered
// ends the process at once: a step of a large model, or a driver's compiler, may take seconds.
// Thread: make and destroy scopes on one thread; ask from any.
class InterruptScope {
 public:
  enum class Signals { CtrlC, AnyEnd };

  explicit InterruptScope(Signals signals = Signals::CtrlC);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  // True once a signal came since the scope began or since clear(), or the program was asked to
  // end.
  static bool interrupted() { return flag().load(std::memory_order_relaxed); }
  static void clear();

  // True once SIGTERM or SIGHUP came since the outermost scope began.
  static bool ended();

  // Throws Error{Interrupted} "interrupted; OUTCOME" once interrupted().
  static void check(std::string_view outcome);

  // The flag itself, for code that polls it without knowing of signals.
  static const std::atomic<bool>& flag();

  // A descriptor that is readable while interrupted(), for poll(): unlike EINTR it cannot come a
  // moment too early, and it wakes the waiter even if another thread took the signal.
  static int wake_descriptor();

 private:
  struct Handler {
    int signal = 0;  // 0: none was set
    struct sigaction before = {};
  };

  void handle(Handler& handler, int signal);
  void restore() noexcept;

  std::array<Handler, 3> handlers_;
  bool before_flag_, before_insists_;
};

}  // namespace octet
