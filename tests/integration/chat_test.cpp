// `octet chat` at a pseudo-terminal: streaming, history, commands, Ctrl-C and Ctrl-D.
#include <gmock/gmock.h>

#include <memory>

#include "tests/integration/process.h"
#include "tests/integration/terminal.h"
#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Chat : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TinyFolder>();
    write_small_model(folder_->path() / "model");
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string model() { return (folder_->path() / "model").string(); }

  // What `octet run --chat` answers, as a terminal shows it.
  static std::string answer_to(const std::string& prompt, const std::string& tokens) {
    const Ran ran = run_octet({"run", model(), "--chat", "-p", prompt, "-n", tokens});
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::string shown;
    for (const char c : ran.out) shown += c == '\n' ? std::string("\r\n") : std::string(1, c);
    return shown;
  }

  static std::unique_ptr<TinyFolder> folder_;
};

std::unique_ptr<TinyFolder> Chat::folder_;

TEST_F(Chat, StreamsTheAnswerThatRunGives) {
  Terminal terminal({"chat", model(), "-n", "12"});
  terminal.expect("> ");
  terminal.type("bread\r");
  terminal.expect("\n");
  terminal.expect(answer_to("bread", "12"));
  terminal.expect("> ");
  terminal.type("/exit\r");
  EXPECT_EQ(terminal.wait(), 0);
}

TEST_F(Chat, RecallsLinesByArrowUpAndForgetsByClear) {
  const std::string answer = answer_to("bread", "12");
  Terminal terminal({"chat", model(), "-n", "12"});
  terminal.expect("> ");
  terminal.type("bread\r");
  terminal.expect(answer);
  terminal.expect("> ");
  terminal.type("/clear\r");
  terminal.expect("\n");
  terminal.expect("> ");
  terminal.type(std::string(Terminal::kArrowUp) + std::string(Terminal::kArrowUp) + "\r");
  terminal.expect(answer);  // the first message again, to a model that remembers nothing
  terminal.expect("> ");
  terminal.type("bread\r");  // now it remembers
  EXPECT_THAT(terminal.expect("> "), Not(HasSubstr(answer)));
  terminal.type("/exit\r");
  EXPECT_EQ(terminal.wait(), 0);
}

TEST_F(Chat, CtrlCStopsTheAnswerAndNotTheProgram) {
  Terminal terminal({"chat", model(), "-n", "3000"});
  terminal.expect("> ");
  terminal.type("bread\r");
  terminal.expect("\n");
  terminal.expect_bytes(50);
  terminal.type(Terminal::kCtrlC);
  terminal.expect("[stopped]");
  terminal.expect("> ");
  terminal.type("/clear\r");
  terminal.expect("> ");
  terminal.type("water\r");
  terminal.expect("\n");
  terminal.expect_bytes(50);  // it answers again
  terminal.type(Terminal::kCtrlC);
  terminal.expect("[stopped]");
  terminal.expect("> ");
  terminal.type(Terminal::kCtrlD);
  EXPECT_EQ(terminal.wait(), 0);
}

TEST_F(Chat, CtrlCAtThePromptDropsTheLine) {
  const std::string answer = answer_to("bread", "12");
  Terminal terminal({"chat", model(), "-n", "12"});
  terminal.expect("> ");
  terminal.type("wat");
  terminal.type(Terminal::kCtrlC);
  terminal.expect("^C");
  terminal.expect("> ");
  terminal.type("bread\r");
  terminal.expect(answer);
  terminal.expect("> ");
  terminal.type(Terminal::kCtrlC);
  terminal.expect("^C");
  terminal.expect("> ");
  terminal.type(Terminal::kCtrlD);
  EXPECT_EQ(terminal.wait(), 0);
}

TEST_F(Chat, AnErrorEndsOneMessageAndNotTheConversation) {
  Terminal terminal({"chat", model(), "-n", "4", "--max-model-len", "40"});
  terminal.expect("> ");
  terminal.type(std::string(120, 'x') + "\r");
  terminal.expect("octet: the prompt has");
  terminal.expect("> ");
  terminal.type("/nonsense\r");
  terminal.expect("commands: ");
  terminal.expect("> ");
  terminal.type("a\r");
  terminal.expect(answer_to("a", "4"));
  terminal.expect("> ");
  terminal.type(Terminal::kCtrlD);
  EXPECT_EQ(terminal.wait(), 0);
}

TEST_F(Chat, AConversationOverTheContextSaysHowToGoOn) {
  Terminal terminal({"chat", model(), "-n", "30", "--max-model-len", "60"});
  terminal.expect("> ");
  terminal.type("bread\r");
  terminal.expect("\n");
  terminal.expect("> ");
  terminal.type("bread\r");
  terminal.expect("octet: the conversation has ");
  terminal.expect("/clear");
  terminal.expect("> ");
  terminal.type("/clear\r");
  terminal.expect("> ");
  terminal.type("bread\r");
  terminal.expect(answer_to("bread", "30"));
  terminal.expect("> ");
  terminal.type(Terminal::kCtrlD);
  EXPECT_EQ(terminal.wait(), 0);
}

TEST_F(Chat, Latin1IsReplacedAndEnterStillWorks) {
  Terminal terminal({"chat", model(), "-n", "12"});
  terminal.expect("> ");
  terminal.type("br\xe9\r");
  terminal.expect("\n");
  terminal.expect(answer_to("br\xef\xbf\xbd", "12"));
  terminal.expect("> ");
  terminal.type(Terminal::kCtrlD);
  EXPECT_EQ(terminal.wait(), 0);
}

TEST_F(Chat, AnswersLinesOfAPipe) {
  const Ran ran = run_octet({"chat", model(), "-n", "12"}, {.input = "bread\n/exit\nwater\n"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, run_octet({"run", model(), "--chat", "-p", "bread", "-n", "12"}).out);
}

TEST_F(Chat, KeepsHistoryInAFile) {
  const std::string history = (folder_->path() / "history").string();
  {
    Terminal terminal({"chat", model(), "-n", "4", "--history", history});
    terminal.expect("> ");
    terminal.type("bread\r");
    terminal.expect("\n");
    terminal.expect("> ");
    terminal.type(Terminal::kCtrlD);
    EXPECT_EQ(terminal.wait(), 0);
  }
  Terminal terminal({"chat", model(), "-n", "12", "--history", history});
  terminal.expect("> ");
  terminal.type(std::string(Terminal::kArrowUp) + "\r");
  terminal.expect(answer_to("bread", "12"));
  terminal.expect("> ");
  terminal.type(Terminal::kCtrlD);
  EXPECT_EQ(terminal.wait(), 0);
}

}  // namespace
}  // namespace octet
