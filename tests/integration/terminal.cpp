#include "tests/integration/terminal.h"

#include <fmt/format.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

#include "tests/integration/process.h"

namespace octet {
namespace {

constexpr int kPatienceMs = 30000;  // until a test gives up; a sound program needs milliseconds

}  // namespace

Terminal::Terminal(const std::vector<std::string>& words) {
  std::vector<std::string> texts{octet_program()};
  texts.insert(texts.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);
  const winsize size{40, 200, 0, 0};
  child_ = forkpty(&master_, nullptr, nullptr, &size);
  if (child_ < 0) throw std::runtime_error("cannot make a pseudo-terminal");
  if (child_ == 0) {
    setenv("TERM", "xterm", 1);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);
    execv(argv[0], argv.data());
    _exit(127);
  }
}

Terminal::~Terminal() {
  if (child_ > 0) {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  close(master_);
}

void Terminal::type(std::string_view bytes) const {
  if (write(master_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    throw std::runtime_error("cannot type");
}

void Terminal::send(int signal) const {
  if (kill(child_, signal) != 0) throw std::runtime_error("cannot send a signal");
}

// Reads what comes next; false at the end of the program or of patience.
bool Terminal::more() {
  pollfd waiting{master_, POLLIN, 0};
  int ready = 0;
  while ((ready = poll(&waiting, 1, kPatienceMs)) < 0 && errno == EINTR) {
  }
  stuck_ = ready == 0;
  char bytes[4096];
  const ssize_t got = ready > 0 ? read(master_, bytes, sizeof bytes) : 0;
  if (got > 0) seen_.append(bytes, static_cast<size_t>(got));
  return got > 0;
}

std::string Terminal::expect(std::string_view text) {
  size_t at = 0;
  while ((at = seen_.find(text)) == std::string::npos) {
    if (!more())
      throw std::runtime_error(fmt::format("\"{}\" did not come; this did: {}", text, seen_));
  }
  const size_t end = at + text.size();
  std::string until = seen_.substr(0, end);
  seen_.erase(0, end);
  return until;
}

void Terminal::expect_bytes(size_t bytes) {
  const size_t target = seen_.size() + bytes;
  while (seen_.size() < target) {
    if (!more()) throw std::runtime_error(fmt::format("no more came after: {}", seen_));
  }
}

int Terminal::wait() {
  while (more()) {
  }
  int status = 0;
  if (stuck_) kill(child_, SIGKILL);
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace octet
