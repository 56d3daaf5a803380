#include "cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "cli/flags_test_tables.h"

namespace octet {
namespace {

using test_tables::program;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

bool have(const char* shell) {
  return std::system(fmt::format("command -v {} >/dev/null", shell).c_str()) == 0;
}

std::vector<std::string> lines_of(const std::string& command) {
  std::vector<std::string> lines;
  std::string line;
  FILE* pipe = popen(command.c_str(), "r");
  for (int c = pipe ? fgetc(pipe) : EOF; c != EOF; c = fgetc(pipe)) {
    if (c != '\n')
      line += static_cast<char>(c);
    else
      lines.push_back(std::exchange(line, ""));
  }
  if (pipe) pclose(pipe);
  return lines;
}

// A script in a file of its own.
class Script {
 public:
  Script(std::string name, std::string_view text)
      : path_(testing::TempDir() + std::to_string(getpid()) + std::move(name)) {
    std::ofstream(path_) << text;
  }
  ~Script() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// What bash offers for `octet WORDS...`, the last word being completed; words are split as bash
// does it, so --name=v is three of them.
std::vector<std::string> bash_offers(const std::vector<std::string>& words) {
  const Script script("octet_completion_test.bash", bash_completion(program()));
  std::string quoted = "octet";
  for (const std::string& word : words) quoted += fmt::format(" \"{}\"", word);
  return lines_of(
      fmt::format("bash --norc -c 'source {}; COMP_WORDS=({}); COMP_CWORD={}; _octet; "
                  "printf \"%s\\n\" \"${{COMPREPLY[@]}}\"' 2>&1",
                  script.path(), quoted, words.size()));
}

class BashCompletion : public testing::Test {
 protected:
  void SetUp() override {
    if (!have("bash")) GTEST_SKIP() << "bash is not installed";
  }
};

TEST_F(BashCompletion, OffersCommands) {
  EXPECT_THAT(bash_offers({""}),
              UnorderedElementsAre("run", "serve", "completion", "--help", "--version"));
  EXPECT_THAT(bash_offers({"s"}), ElementsAre("serve"));
}

TEST_F(BashCompletion, OffersFlagsOfTheCommand) {
  EXPECT_THAT(bash_offers({"run", "--top"}), UnorderedElementsAre("--top-k", "--top-p"));
  EXPECT_THAT(bash_offers({"serve", "--no"}), ElementsAre("--no-enable-prefix-caching"));
  const auto all = bash_offers({"run", "M", "-"});
  EXPECT_THAT(all, Contains("-n"));
  EXPECT_THAT(all, Contains("-tp"));
  EXPECT_THAT(all, Contains("--help"));
  EXPECT_THAT(all, Not(Contains("--port")));
}

TEST_F(BashCompletion, OffersChoicesAfterASpaceOrAnEqualsSign) {
  EXPECT_THAT(bash_offers({"run", "--prefer", ""}), UnorderedElementsAre("w8a8", "w8a16"));
  EXPECT_THAT(bash_offers({"run", "--prefer", "="}), UnorderedElementsAre("w8a8", "w8a16"));
  EXPECT_THAT(bash_offers({"run", "--prefer", "=", "w8a1"}), ElementsAre("w8a16"));
  EXPECT_THAT(bash_offers({"completion", "f"}), ElementsAre("fish"));
}

TEST_F(BashCompletion, OffersFilesForPathsAndNothingForOtherValues) {
  const Script file("octet completion file", "x");
  const std::string start = file.path().substr(0, file.path().size() - 5);
  EXPECT_THAT(bash_offers({"serve", start}), ElementsAre(file.path()));
  EXPECT_THAT(bash_offers({"run", "--save", start}), ElementsAre(file.path()));
  // printf prints one empty line for an empty list
  EXPECT_THAT(bash_offers({"run", "--prompt", start}), ElementsAre(""));
  EXPECT_THAT(bash_offers({"run", "-n", ""}), ElementsAre(""));
  EXPECT_THAT(bash_offers({"nonsense", ""}), ElementsAre(""));
}

TEST(ZshCompletion, ParsesAndNamesEveryFlag) {
  const std::string text = zsh_completion(program());
  EXPECT_THAT(text, testing::StartsWith("#compdef octet\n"));
  EXPECT_THAT(text, HasSubstr("'(--prefer)--prefer=[Scheme]:w8a8|w8a16:(w8a8 w8a16)'"));
  EXPECT_THAT(text, HasSubstr("'(--top-k)--top-k=[Candidates\\: \\[best\\] first, it'\\''s a "
                              "count]:N: '"));
  EXPECT_THAT(text, HasSubstr("'completion:Print a completion script\\: it'\\''s for a shell'"));
  if (!have("zsh")) GTEST_SKIP() << "zsh is not installed";
  const Script script("octet_completion_test.zsh", text);
  EXPECT_THAT(lines_of("zsh -n " + script.path() + " 2>&1"), IsEmpty());
}

TEST(FishCompletion, ParsesAndNamesEveryFlag) {
  const std::string text = fish_completion(program());
  EXPECT_THAT(text, HasSubstr("complete -c octet -n '__fish_seen_subcommand_from run' -l prefer -x "
                              "-a 'w8a8 w8a16' -d 'Scheme'\n"));
  EXPECT_THAT(text, HasSubstr("-d 'Candidates: [best] first, it\\'s a count'\n"));
  EXPECT_THAT(text, HasSubstr(" -o tp -l tensor-parallel-size -x -d 'Ranks'\n"));
  if (!have("fish")) GTEST_SKIP() << "fish is not installed";
  const Script script("octet_completion_test.fish", text);
  const auto offers = lines_of(fmt::format(
      "fish --no-config -c 'source {}; complete -C \"octet run --prefer \"' 2>&1", script.path()));
  EXPECT_THAT(offers, UnorderedElementsAre("w8a8\tScheme", "w8a16\tScheme"));
}

TEST(Completion, RefusesOtherShells) {
  EXPECT_EQ(completion_script(program(), "fish"), fish_completion(program()));
  EXPECT_THROW(completion_script(program(), "tcsh"), Error);
}

}  // namespace
}  // namespace octet
