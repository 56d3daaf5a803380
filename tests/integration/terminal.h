#pragma once
// The program at a pseudo-terminal, as a person uses it.
#include <sys/types.h>
#include <string>
#include <string_view>
#include <vector>

namespace octet {

// Runs `octet WORDS...` with a terminal as its standard input, output and error. The program ends
// with the destructor at the latest.
class Terminal {
 public:
  explicit Terminal(const std::vector<std::string>& words);
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  // Types bytes: "text\r" for a line, kArrowUp, kCtrlC.
  void type(std::string_view bytes) const;
  // Sends a signal to the program.
  void send(int signal) const;
  // Waits until `text` has come since the last match and returns everything up to its end. Throws
  // with what came instead when the program ends or half a minute passes.
  std::string expect(std::string_view text);
  // Waits for at least `bytes` more bytes.
  void expect_bytes(size_t bytes);
  // Waits for the end of the program; its exit status, or -signal (-SIGKILL: it had to be ended).
  int wait();

  static constexpr std::string_view kArrowUp = "\x1b[A";
  static constexpr std::string_view kCtrlC = "\x03";
  static constexpr std::string_view kCtrlD = "\x04";

 private:
  bool more();

  pid_t child_ = -1;
  int master_ = -1;
  bool stuck_ = false;  // patience has run out
  std::string seen_;    // since the last match
};

}  // namespace octet
