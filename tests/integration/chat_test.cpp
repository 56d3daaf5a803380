// `octet chat` at a pseudo-terminal: streaming, history, commands, Ctrl-C and Ctrl-D.
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <memory>

#include "tests/integration/process.h"
#include "tests/integration/terminal.h"
#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

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

TEST_F(Chat, TermAndHangUpEndTheAnswerAndTheProgram) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    Terminal terminal({"chat", model(), "-n", "3000"});
    terminal.expect("> ");
    terminal.type("bread\r");
    terminal.expect("\n");
    terminal.expect_bytes(50);
    terminal.send(signal);
    terminal.expect("[stopped]");
    EXPECT_EQ(terminal.wait(), 130) << signal;
  }
}

TEST_F(Chat, TermAndHangUpEndTheProgramAtThePrompt) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    Terminal terminal({"chat", model(), "-n", "12"});
    terminal.expect("> ");
    terminal.type("half a li");
    terminal.expect("half a li");
    terminal.send(signal);
    EXPECT_EQ(terminal.wait(), 130) << signal;
  }
}

TEST_F(Chat, TermEndsAScriptWithoutItsOtherLines) {
  const std::string out = (folder_->path() / "answers").string();
  const auto begun = [&] {
    std::error_code error;
    return std::filesystem::file_size(out, error) > 50 && !error;
  };
  const Words words{"chat", model(), "-n", "3000"};
  const Ran ran = run_octet(
      words,
      {.input = "bread\nwater\nbread\n", .output_path = out, .signal = SIGTERM, .when = begun});
  EXPECT_EQ(ran.status, 130) << describe_run(words, ran);
  const std::string answers = read_bytes(out);
  EXPECT_TRUE(answers.ends_with(" [stopped]\n")) << answers;
  EXPECT_EQ(answers.find("[stopped]"), answers.rfind("[stopped]"));
}

TEST_F(Chat, BlankLinesAreNoMessages) {
  const std::string answer = run_octet({"chat", model(), "-n", "12"}, {.input = "bread\n"}).out;
  ASSERT_FALSE(answer.empty());
  EXPECT_EQ(run_octet({"chat", model(), "-n", "12"}, {.input = "  \n\n \t \nbread\n   "}).out,
            answer);
  // Nor is a system message of blanks one.
  EXPECT_THAT(run_octet({"chat", model(), "-n", "12"}, {.input = "/system   \n"}).out,
              HasSubstr("commands: "));
}

TEST_F(Chat, CommandsConfirmOnTheStandardError) {
  const Ran ran =
      run_octet({"chat", model(), "-n", "12"}, {.input = "/clear\n/system be brief\n/exit\n"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err,
            "the conversation is forgotten\n"
            "a new conversation begins with this system message\n");
}

TEST_F(Chat, HistoryIsOfTerminalsOnly) {
  for (const std::string& path : {std::string("/nonexist/h"), folder_->path().string()}) {
    const Ran ran =
        run_octet({"chat", model(), "-n", "2", "--history", path}, {.input = "bread\n"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.err, "") << path;
    Terminal terminal({"chat", model(), "-n", "2", "--history", path});
    terminal.expect("> ");
    terminal.type("bread\r");
    terminal.expect("history '" + path + "'");
    terminal.expect("> ");
    terminal.type(Terminal::kCtrlD);
    EXPECT_EQ(terminal.wait(), 0);
  }
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
