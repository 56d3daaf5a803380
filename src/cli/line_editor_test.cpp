#include "cli/line_editor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/line_editor_history.h"

namespace octet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A path of its own, removed afterwards.
class TempPath {
 public:
  explicit TempPath(const std::string& name)
      : path_(testing::TempDir() + std::to_string(getpid()) + name) {
    std::remove(path_.c_str());
  }
  ~TempPath() { std::remove(path_.c_str()); }
  const std::string& str() const { return path_; }

 private:
  std::string path_;
};

std::string described(const InputLine& line) {
  switch (line.kind) {
    case InputLine::Kind::Text:
      return "text[" + line.text + "]";
    case InputLine::Kind::Interrupted:
      return "interrupted";
    case InputLine::Kind::End:
      return "end";
  }
  return "";
}

// A process that reads lines at a pseudo-terminal until their end and says what it got.
class Session {
 public:
  explicit Session(const std::string& history = "", const char* term = "xterm",
                   const char* lang = "C") {
    winsize size = {};
    size.ws_row = 24;
    size.ws_col = 80;
    child_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (child_ == 0) {
      setenv("TERM", term, 1);
      setenv("LC_ALL", lang, 1);
      std::signal(SIGINT, SIG_DFL);
      serve(history);
    }
  }
  ~Session() {
    if (terminal_ >= 0) close(terminal_);
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
  }

  void type(std::string_view keys) {
    ASSERT_EQ(write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }

  void interrupt() { kill(child_, SIGINT); }

  // Waits until the output since the last call holds `text`, and returns that part.
  std::string expect(const std::string& text) {
    std::string seen;
    while (true) {
      const size_t at = output_.find(text);
      if (at != std::string::npos) {
        seen = output_.substr(0, at + text.size());
        output_.erase(0, at + text.size());
        return seen;
      }
      pollfd waiting{terminal_, POLLIN, 0};
      char buffer[4096];
      const int ready = poll(&waiting, 1, 20000);
      const ssize_t got = ready > 0 ? ::read(terminal_, buffer, sizeof buffer) : -1;
      if (got <= 0) {
        ADD_FAILURE() << "no '" << text << "' in: " << testing::PrintToString(output_);
        return output_;
      }
      output_.append(buffer, static_cast<size_t>(got));
    }
  }

 private:
  [[noreturn]] static void serve(const std::string& history) {
    const InterruptScope scope;
    LineEditor editor({.history_path = history});
    while (true) {
      const InputLine line = editor.read("ask> ");
      std::printf("<%s>\n", described(line).c_str());
      std::fflush(stdout);
      if (line.kind == InputLine::Kind::End) _exit(0);
    }
  }

  int terminal_ = -1;
  pid_t child_ = -1;
  std::string output_;
};

TEST(LineEditorTerminal, ReadsALineAndEndsAtControlD) {
  Session session;
  session.expect("ask> ");
  session.type("hello\r");
  session.expect("<text[hello]>");
  session.expect("ask> ");
  session.type("\x04");
  session.expect("<end>");
}

TEST(LineEditorTerminal, EditsWithEmacsKeysAndArrows) {
  Session session;
  session.expect("ask> ");
  session.type("world\x01hello \x05!\x1b[D\x1b[D\x7f\r");  // begin, end, left twice, backspace
  session.expect("<text[hello word!]>");
}

TEST(LineEditorTerminal, ControlCDropsTheLineAndReadsOn) {
  Session session;
  session.expect("ask> ");
  session.type("wrong");
  session.expect("wrong");
  session.type("\x03");
  session.expect("<interrupted>");
  session.expect("ask> ");
  session.type("right\r");
  session.expect("<text[right]>");
  session.expect("ask> ");
  session.type("\x03");
  session.expect("<interrupted>");
}

TEST(LineEditorTerminal, TakesUtf8WhateverTheLocale) {
  for (const char* lang : {"C", "C.UTF-8"}) {
    Session session("", "xterm", lang);
    session.expect("ask> ");
    // a-umlaut, two CJK characters, an emoji removed by backspace, an o-umlaut
    session.type("\xc3\xa4\xe6\x97\xa5\xe6\x9c\xac\xf0\x9f\x98\x80\x7f\xc3\xb6\r");
    session.expect("<text[\xc3\xa4\xe6\x97\xa5\xe6\x9c\xac\xc3\xb6]>");
  }
}

TEST(LineEditorTerminal, ReplacesBytesThatAreNoUtf8AndStillTakesTheKeysAfterThem) {
  Session session;
  session.expect("ask> ");
  session.type("caf\xe9\r");  // Latin-1: the first byte of three in UTF-8
  session.expect("<text[caf\xef\xbf\xbd]>");
  session.expect("ask> ");
  session.type(
      "\xf0\xe9\xff \xc3\xa4\x80\r");  // cut short twice, never a byte of UTF-8; a stray one
  session.expect("<text[\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd \xc3\xa4\xef\xbf\xbd]>");
  session.expect("ask> ");
  session.type("\xe9\x7fok\r");  // backspace removes it
  session.expect("<text[ok]>");
  session.expect("ask> ");
  session.type("\xe9\x03");
  session.expect("<interrupted>");
  session.expect("ask> ");
  session.type("next\r");
  session.expect("<text[next]>");
}

TEST(LineEditorTerminal, RecallsLinesOfThisAndFormerSessions) {
  const TempPath history("octet_line_editor_history");
  {
    Session session(history.str());
    session.expect("ask> ");
    session.type("first \xc3\xa4\r");
    session.expect("<text[first \xc3\xa4]>");
    session.expect("ask> ");
    session.type("second\r");
    session.expect("<text[second]>");
  }
  Session session(history.str());
  session.expect("ask> ");
  session.type("\x1b[A\x1b[A\r");
  session.expect("<text[first \xc3\xa4]>");
  session.expect("ask> ");
  session.type("\x1b[A\r");
  session.expect("<text[first \xc3\xa4]>");
  session.expect("ask> ");
  session.type("\x12");  // Ctrl-R
  session.type("eco");
  session.expect("eco");
  session.type("\r");
  session.expect("<text[second]>");
}

TEST(LineEditorTerminal, KeepsPastedLinesAndAltEnterInOneText) {
  Session session;
  session.expect("ask> ");
  session.type("say: \x1b[200~one\rtwo\ttab\r\x1b[201~!\r");
  session.expect("<text[say: one\r\ntwo\ttab!]>");  // the terminal writes \n as \r\n
  session.expect("ask> ");
  session.type("a\x1b\rb\r");
  session.expect("<text[a\r\nb]>");
}

TEST(LineEditorTerminal, TakesAnInterruptSignalForControlC) {
  Session session;
  session.expect("ask> ");
  session.type("wrong");
  session.expect("wrong");
  session.interrupt();
  session.expect("<interrupted>");
  session.expect("ask> ");
  session.type("right\r");
  session.expect("<text[right]>");
}

TEST(LineEditorTerminal, ReadsPlainLinesOnADumbTerminal) {
  Session session("", "dumb");
  session.expect("ask> ");
  session.type("hello\r");
  const std::string seen = session.expect("<text[hello]>");
  EXPECT_THAT(seen, Not(HasSubstr("\x1b")));
  session.expect("ask> ");
  session.type("\x03");
  session.expect("<interrupted>");
  session.expect("ask> ");
  session.type("\x04");
  session.expect("<end>");
}

std::FILE* file_with(std::string_view text) {
  std::FILE* file = std::tmpfile();
  std::fwrite(text.data(), 1, text.size(), file);
  std::rewind(file);
  return file;
}

TEST(LineEditorPipe, ReadsLinesWithoutPromptOrEcho) {
  std::FILE* input = file_with(std::string_view("one\r\ntwo \xff\0three\n\nlast", 22));
  std::FILE* output = std::tmpfile();
  LineEditor editor({.input = input, .output = output});
  EXPECT_FALSE(editor.interactive());
  EXPECT_EQ(described(editor.read("ask> ")), "text[one]");
  EXPECT_EQ(described(editor.read("ask> ")), std::string("text[two \xff\0three]", 17));
  EXPECT_EQ(described(editor.read("ask> ")), "text[]");
  EXPECT_EQ(described(editor.read("ask> ")), "text[last]");
  EXPECT_EQ(described(editor.read("ask> ")), "end");
  std::fseek(output, 0, SEEK_END);
  EXPECT_EQ(std::ftell(output), 0);
  std::fclose(input);
  std::fclose(output);
}

TEST(LineEditorPipe, RefusesInputThatCannotBeRead) {
  std::FILE* folder = std::fopen("/", "r");
  ASSERT_NE(folder, nullptr);
  LineEditor editor({.input = folder, .output = stdout});
  try {
    editor.read("");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::Environment);
    EXPECT_THAT(error.message(), HasSubstr("cannot read input: Is a directory"));
  }
  std::fclose(folder);
}

TEST(InputHistory, KeepsEntriesInAPrivateFile) {
  const TempPath path("octet_input_history");
  {
    InputHistory history(path.str());
    EXPECT_TRUE(history.add("a\nb\\n"));
    EXPECT_TRUE(history.add("c"));
    EXPECT_FALSE(history.add("c"));
    EXPECT_FALSE(history.add(""));
    EXPECT_EQ(history.problem(), "");
  }
  struct stat info = {};
  ASSERT_EQ(stat(path.str().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_THAT(InputHistory(path.str()).entries(), ElementsAre("a\nb\\n", "c"));
}

TEST(InputHistory, KeepsTheNewestEntries) {
  const TempPath path("octet_input_history_limit");
  {
    InputHistory history(path.str(), 3);
    for (int i = 0; i < 10; ++i) history.add(std::to_string(i));
    EXPECT_THAT(history.entries(), ElementsAre("7", "8", "9"));
  }
  EXPECT_THAT(InputHistory(path.str(), 2).entries(), ElementsAre("8", "9"));
}

TEST(InputHistory, SaysWhyAFileCannotBeUsed) {
  InputHistory history("/nonexistent-folder/history");
  EXPECT_EQ(history.problem(), "");
  EXPECT_TRUE(history.add("kept in memory"));
  EXPECT_EQ(history.problem(),
            "cannot write history '/nonexistent-folder/history': No such file or directory");
  EXPECT_THAT(history.entries(), ElementsAre("kept in memory"));
  EXPECT_THAT(InputHistory("").entries(), IsEmpty());
}

TEST(InputHistory, TakesAnyBytes) {
  const TempPath path("octet_input_history_bytes");
  std::ofstream(path.str()) << "ok\n\xff\xfe\\\n\n\\";
  EXPECT_THAT(InputHistory(path.str()).entries(), ElementsAre("ok", "\xff\xfe\\", "\\"));
}

}  // namespace
}  // namespace octet
