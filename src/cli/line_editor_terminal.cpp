// Line editing at a terminal by libedit, through its wide-character interface (editline(3)).
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>
#include <utf8proc.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/line_editor_reader.h"

namespace octet {
namespace {

constexpr int kHistoryEntries = 1000;

// What xterm and its kin send around pasted text once it is switched on ("bracketed paste").
constexpr std::string_view kPasteOn = "\x1b[?2004h";
constexpr std::string_view kPasteOff = "\x1b[?2004l";
constexpr std::wstring_view kPasteEnd = L"\x1b[201~";

std::wstring to_wide(std::string_view text) {
  std::wstring wide;
  while (!text.empty()) {
    utf8proc_int32_t code = 0;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                         static_cast<utf8proc_ssize_t>(text.size()), &code);
    wide += length > 0 ? static_cast<wchar_t>(code) : L'\xFFFD';
    text.remove_prefix(length > 0 ? static_cast<size_t>(length) : 1);
  }
  return wide;
}

std::string to_utf8(std::wstring_view wide) {
  std::string text;
  for (const wchar_t code : wide) {
    utf8proc_uint8_t bytes[4];
    const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
    text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
  }
  return text;
}

// libedit decodes and encodes by the locale of the thread. While one of these lives that is UTF-8,
// whatever LANG says: what a person types goes to a model as UTF-8.
class Utf8Locale {
 public:
  Utf8Locale() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (locale_ != nullptr) before_ = uselocale(locale_);
  }
  ~Utf8Locale() {
    if (locale_ == nullptr) return;
    uselocale(before_);
    freelocale(locale_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  locale_t locale_;
  locale_t before_ = nullptr;
};

struct EditLineDeleter {
  void operator()(EditLine* edit) const { el_end(edit); }
};
struct HistoryDeleter {
  void operator()(HistoryW* history) const { history_wend(history); }
};

// What the functions that libedit calls back share with read().
struct EditState {
  std::wstring prompt;
  bool interrupted = false;
  std::optional<char> pending = {};  // a byte that ended a broken character
  std::FILE* input = nullptr;
  std::FILE* output = nullptr;
};

EditState& state_of(EditLine* edit) {
  void* data = nullptr;
  el_wget(edit, EL_CLIENTDATA, &data);
  return *static_cast<EditState*>(data);
}

bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

// One byte of the terminal: 1, 0 at its end, -1 when it is gone or an interrupt came first.
int read_byte(EditState& state, char* byte) {
  if (state.pending) {
    *byte = *std::exchange(state.pending, std::nullopt);
    return 1;
  }
  pollfd waiting[2] = {{fileno(state.input), POLLIN, 0},
                       {InterruptScope::wake_descriptor(), POLLIN, 0}};
  while (poll(waiting, 2, -1) < 0) {
    if (errno != EINTR) return -1;
  }
  state.interrupted = waiting[1].revents != 0;
  return state.interrupted ? -1 : static_cast<int>(read(waiting[0].fd, byte, 1));
}

// Bytes of the UTF-8 character that begins with `lead`; 1 also for bytes that begin none.
size_t utf8_length(unsigned char lead) {
  return lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 1;
}

// Called by libedit for each character (EL_GETCFN). Bytes that are no UTF-8 become U+FFFD; the key
// after a character that was cut short (as Latin-1 text looks) is a key of its own.
int read_character(EditLine* edit, wchar_t* character) {
  EditState& state = state_of(edit);
  std::string bytes;
  do {
    char byte = 0;
    const int got = read_byte(state, &byte);
    if (got <= 0) return got;
    if (!bytes.empty() && !is_continuation(byte)) {
      state.pending = byte;
      break;
    }
    bytes += byte;
  } while (bytes.size() < utf8_length(static_cast<unsigned char>(bytes[0])));
  *character = to_wide(bytes)[0];
  return 1;
}

wchar_t* prompt_of(EditLine* edit) {
  return state_of(edit).prompt.data();
}

// Ctrl-C: the line ends and is dropped.
unsigned char on_interrupt(EditLine* edit, wint_t) {
  EditState& state = state_of(edit);
  state.interrupted = true;
  const LineInfoW* line = el_wline(edit);
  el_cursor(edit, static_cast<int>(line->lastchar - line->cursor));
  el_wset(edit, EL_REFRESH);
  std::fputs("^C\n", state.output);
  std::fflush(state.output);
  return CC_EOF;
}

// Ctrl-Z: the shell gets its terminal back until it continues us.
unsigned char on_suspend(EditLine* edit, wint_t) {
  el_wset(edit, EL_PREP_TERM, 0);
  raise(SIGTSTP);
  el_wset(edit, EL_PREP_TERM, 1);
  return CC_REDISPLAY;
}

unsigned char on_line_feed(EditLine* edit, wint_t) {
  return el_winsertstr(edit, L"\n") == 0 ? CC_REFRESH : CC_ERROR;
}

// The text between the two marks of a paste, its line feeds included, goes into the line as it is.
unsigned char on_paste(EditLine* edit, wint_t) {
  std::wstring text;
  wchar_t c = 0;
  while (!std::wstring_view(text).ends_with(kPasteEnd)) {
    if (el_wgetc(edit, &c) != 1) return CC_EOF;
    text += c == L'\r' ? L'\n' : c;
  }
  text.resize(text.size() - kPasteEnd.size());
  while (!text.empty() && text.back() == L'\n') text.pop_back();
  if (text.empty()) return CC_NORM;
  return el_winsertstr(edit, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
}

void bind(EditLine* edit, const wchar_t* keys, const wchar_t* command) {
  el_wset(edit, EL_BIND, keys, command, nullptr);
}

}  // namespace

class LineEditor::Terminal : public LineEditor::Reader {
 public:
  explicit Terminal(LineEditorOptions options) : Reader(std::move(options)) {
    const Utf8Locale utf8;
    state_.input = options_.input;
    state_.output = options_.output;
    edit_.reset(el_init("octet", options_.input, options_.output, stderr));
    recall_.reset(history_winit());
    if (!edit_ || !recall_)
      throw_error(Code::Environment, "cannot set up line editing",
                  "with TERM=dumb lines are read without editing");
    el_wset(edit_.get(), EL_CLIENTDATA, &state_);
    el_wset(edit_.get(), EL_PROMPT, prompt_of);
    el_wset(edit_.get(), EL_GETCFN, read_character);
    el_wset(edit_.get(), EL_EDITOR, L"emacs");
    el_wset(edit_.get(), EL_SIGNAL, 1);  // stop, continue and resize leave the terminal sane
    bind_keys();
    HistEventW event;
    history_w(recall_.get(), &event, H_SETSIZE, kHistoryEntries);
    for (const std::string& entry : history_.entries()) recall(entry);
    el_wset(edit_.get(), EL_HIST, history_w, recall_.get());
  }

  bool interactive() const override { return true; }

  InputLine read(std::string_view prompt) override {
    const Utf8Locale utf8;
    const InterruptScope scope;
    state_.prompt = to_wide(prompt);
    state_.interrupted = false;
    el_resize(edit_.get());
    // libedit itself does this only after the prompt is out; keys typed between the two would be
    // read by the terminal's own line discipline.
    el_wset(edit_.get(), EL_PREP_TERM, 1);
    write(kPasteOn);
    int count = 0;
    const wchar_t* line = el_wgets(edit_.get(), &count);
    write(kPasteOff);
    if (state_.interrupted) {
      el_reset(edit_.get());
      return {InputLine::Kind::Interrupted};
    }
    if (line == nullptr || count <= 0) {
      write("\n");
      return {InputLine::Kind::End};
    }
    std::wstring_view typed(line, static_cast<size_t>(count));
    if (typed.ends_with(L'\n')) typed.remove_suffix(1);
    std::string text = to_utf8(typed);
    if (history_.add(text)) recall(text);
    return {InputLine::Kind::Text, std::move(text)};
  }

 private:
  void write(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), options_.output);
    std::fflush(options_.output);
  }

  void recall(const std::string& entry) {
    HistEventW event;
    history_w(recall_.get(), &event, H_ENTER, to_wide(entry).c_str());
  }

  void bind_keys() {
    EditLine* edit = edit_.get();
    // Ctrl-C is a key while a line is edited, not a signal that could come a moment too early.
    el_wset(edit, EL_SETTY, L"-d", L"-isig", nullptr);
    el_wset(edit, EL_ADDFN, L"octet-suspend", L"Stop the program", on_suspend);
    el_wset(edit, EL_ADDFN, L"octet-interrupt", L"Drop the line", on_interrupt);
    el_wset(edit, EL_ADDFN, L"octet-line-feed", L"Begin another line", on_line_feed);
    el_wset(edit, EL_ADDFN, L"octet-paste", L"Insert pasted text", on_paste);
    bind(edit, L"^C", L"octet-interrupt");
    bind(edit, L"^Z", L"octet-suspend");
    bind(edit, L"\x1b\r", L"octet-line-feed");
    bind(edit, L"\x1b\n", L"octet-line-feed");
    bind(edit, L"\x1b[200~", L"octet-paste");
    bind(edit, L"^R", L"em-inc-search-prev");
    bind(edit, L"^I", L"ed-insert");
    bind(edit, L"\x1b[1;5D", L"ed-prev-word");  // Ctrl-Left and Ctrl-Right of xterm
    bind(edit, L"\x1b[1;5C", L"em-next-word");
    bind(edit, L"\x1b[3~", L"ed-delete-next-char");
    bind(edit, L"\x1b[H", L"ed-move-to-beg");
    bind(edit, L"\x1b[F", L"ed-move-to-end");
  }

  EditState state_;
  std::unique_ptr<EditLine, EditLineDeleter> edit_;
  std::unique_ptr<HistoryW, HistoryDeleter> recall_;
};

std::unique_ptr<LineEditor::Reader> LineEditor::Reader::on_terminal(LineEditorOptions options) {
  return std::make_unique<Terminal>(std::move(options));
}

}  // namespace octet
