#pragma once
// Reading lines from a person (editing, history) or from a pipe.
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace octet {

// One answer to a prompt.
struct InputLine {
  enum class Kind {
    Text,         // `text` holds the line, without its line feed
    Interrupted,  // Ctrl-C: what was typed is dropped
    End,          // Ctrl-D on an empty line, or the end of the input
  };
  Kind kind;
  std::string text = {};  // as typed; bytes of a pipe are passed on unchanged
};

struct LineEditorOptions {
  std::string history_path = {};  // of edited lines; empty: history of this process only
  std::FILE* input = stdin;
  std::FILE* output = stdout;  // prompts and the edited line; stderr is taken if it is no terminal
};

// Edits lines by libedit when input and output are terminals: emacs keys, arrows, Ctrl-R, history,
// UTF-8; Alt-Enter begins another line of the same text, and pasted lines stay together. Else reads
// plain lines, without a prompt unless both are terminals (TERM=dumb).
// Outside of read() the terminal is in its usual state: Ctrl-C is a signal there, see
// InterruptScope.
class LineEditor {
 public:
  explicit LineEditor(LineEditorOptions options = {});
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Waits for a line. Throws Error{Environment} when the input cannot be read.
  InputLine read(std::string_view prompt);

  // True when lines are edited at a terminal, false for pipes and files.
  bool interactive() const;

  // Why the history file could not be read or written; empty while all is well.
  const std::string& history_problem() const;

 private:
  class Reader;    // plain lines
  class Terminal;  // libedit
  std::unique_ptr<Reader> reader_;
};

}  // namespace octet
