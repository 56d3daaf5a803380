#pragma once
// The two ways in which a LineEditor reads; internal to it.
#include "cli/line_editor.h"
#include "cli/line_editor_history.h"

namespace octet {

// Reads plain lines from the descriptor of the input; the base of the reader that edits.
class LineEditor::Reader {
 public:
  explicit Reader(LineEditorOptions options)
      : options_(std::move(options)), history_(options_.history_path) {}
  virtual ~Reader() = default;
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  virtual InputLine read(std::string_view prompt);
  virtual bool interactive() const { return false; }
  const InputHistory& history() const { return history_; }

  // A reader on libedit. Requires that both files are terminals.
  static std::unique_ptr<Reader> on_terminal(LineEditorOptions options);

 protected:
  LineEditorOptions options_;
  InputHistory history_;

 private:
  bool fill();

  std::string buffer_;  // bytes read and not yet given
  bool at_end_ = false;
};

}  // namespace octet
