#pragma once
// Where commands print. A write that fails is an error, not a silence.
#include <cstdio>
#include <string_view>

namespace octet {

class Console {
 public:
  Console(std::FILE* out, std::FILE* err) : out_(out), err_(err) {}

  // Writes and flushes. Throws Error{Environment} when the output is closed or the disk is full.
  void out(std::string_view text) const;
  // Remarks and errors; a failure to write here is ignored.
  void err(std::string_view text) const;
  // "octet: MESSAGE" and, if there is one, "  hint: HINT" to the standard error, as lines of their
  // own. They quote names of files and users: control characters are shown, not sent to the
  // terminal.
  void say(std::string_view message, std::string_view hint = {}) const;
  // True when the stream is a terminal.
  bool out_is_terminal() const;

 private:
  std::FILE* out_;
  std::FILE* err_;
};

}  // namespace octet
