#include "cli/line_editor.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/line_editor_reader.h"

namespace octet {
namespace {

bool is_terminal(std::FILE* file) {
  return isatty(fileno(file)) != 0;
}

// A terminal that cannot move its cursor, as inside an editor: lines are read without editing.
bool is_dumb() {
  const char* term = std::getenv("TERM");
  return term == nullptr || *term == '\0' || std::string_view(term) == "dumb";
}

}  // namespace

// Appends what the input has to buffer_, waiting for it; false when Ctrl-C came first.
bool LineEditor::Reader::fill() {
  pollfd waiting[2] = {{fileno(options_.input), POLLIN, 0},
                       {InterruptScope::wake_descriptor(), POLLIN, 0}};
  // An interrupted poll is asked again: the descriptor then says whether it was Ctrl-C.
  while (poll(waiting, 2, -1) < 0) {
    if (errno != EINTR) {
      throw_error(Code::Environment, fmt::format("cannot wait: {}", std::strerror(errno)),
                  "the standard input must be a terminal, a file or a pipe");
    }
  }
  if (waiting[1].revents != 0) return false;
  char bytes[4096];
  const ssize_t got = ::read(waiting[0].fd, bytes, sizeof bytes);
  if (got < 0 && errno != EINTR) {
    throw_error(Code::Environment, fmt::format("cannot read input: {}", std::strerror(errno)),
                "the standard input must be a terminal, a file or a pipe");
  }
  at_end_ = got == 0;
  if (got > 0) buffer_.append(bytes, static_cast<size_t>(got));
  return true;
}

InputLine LineEditor::Reader::read(std::string_view prompt) {
  const bool both = is_terminal(options_.input) && is_terminal(options_.output);
  const InterruptScope scope;  // before the prompt: who sees it may press Ctrl-C
  const auto show = [&](std::string_view text) {
    if (!both) return;
    std::fwrite(text.data(), 1, text.size(), options_.output);
    std::fflush(options_.output);
  };
  show(prompt);
  at_end_ = false;
  size_t end = 0;
  while ((end = buffer_.find('\n', end)) == std::string::npos && !at_end_) {
    end = buffer_.size();
    if (fill()) continue;
    if (both) buffer_.clear();
    show("\n");
    return {InputLine::Kind::Interrupted};
  }
  if (end == std::string::npos && buffer_.empty()) return {InputLine::Kind::End};
  std::string text = buffer_.substr(0, end);
  buffer_.erase(0, end == std::string::npos ? end : end + 1);
  if (text.ends_with('\r')) text.pop_back();
  return {InputLine::Kind::Text, std::move(text)};
}

LineEditor::LineEditor(LineEditorOptions options) {
  if (!is_terminal(options.output) && is_terminal(stderr)) options.output = stderr;
  const bool edits = is_terminal(options.input) && is_terminal(options.output) && !is_dumb();
  if (!edits) options.history_path.clear();
  reader_ = edits ? Reader::on_terminal(std::move(options))
                  : std::make_unique<Reader>(std::move(options));
}

LineEditor::~LineEditor() = default;

InputLine LineEditor::read(std::string_view prompt) {
  return reader_->read(prompt);
}

bool LineEditor::interactive() const {
  return reader_->interactive();
}

const std::string& LineEditor::history_problem() const {
  return reader_->history().problem();
}

}  // namespace octet
