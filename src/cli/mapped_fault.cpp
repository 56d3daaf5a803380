#include "cli/mapped_fault.h"

#include <signal.h>
#include <unistd.h>

#include <cstring>

#include "base/atomic_folder.h"
#include "base/error.h"
#include "base/mapped_file.h"

namespace octet {
namespace {

void say(const char* text) {
  size_t left = std::strlen(text);
  while (left > 0) {
    const ssize_t n = ::write(STDERR_FILENO, text, left);
    if (n <= 0) return;
    text += n;
    left -= static_cast<size_t>(n);
  }
}

// Calls async-signal-safe functions only.
void on_bus_error(int signal, siginfo_t* info, void*) {
  const char* path = mapped_path(info->si_addr);
  if (path == nullptr) {
    ::signal(signal, SIG_DFL);  // the access is repeated, and fails for good
    return;
  }
  say("octet: ");
  say(path);
  say(" became shorter, or its disk failed, while it was read\n"
      "  hint: try again when nothing writes to the file; check the disk or the network it is "
      "on\n");
  remove_unfinished_folders();
  ::_exit(exit_status(Code::Environment));
}

}  // namespace

void report_mapped_faults() {
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace octet
