#include "cli/man.h"

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
using test_tables::run;
using testing::HasSubstr;
using testing::Not;

// What `groff -man -ww` prints on standard output and on standard error.
std::string formatted(const std::string& page) {
  const std::string path = testing::TempDir() + std::to_string(getpid()) + "octet_man_test.1";
  std::ofstream(path) << page;
  const std::string command = "groff -man -Tascii -P-bcou -ww " + path + " 2>&1";
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  for (int c = pipe ? fgetc(pipe) : EOF; c != EOF; c = fgetc(pipe)) text += static_cast<char>(c);
  if (pipe) pclose(pipe);
  std::remove(path.c_str());
  return text;
}

bool have_groff() {
  return std::system("command -v groff >/dev/null") == 0;
}

TEST(Man, HasTheSectionsOfAManualPage) {
  const std::string page = man_page(program(), run());
  EXPECT_THAT(page, testing::StartsWith(".TH OCTET-RUN 1 \"\" \"octet 1.2.3\" \"octet manual\"\n"));
  for (const char* section : {"NAME", "SYNOPSIS", "DESCRIPTION", "ARGUMENTS", "OPTIONS", "EXAMPLES",
                              "EXIT STATUS", "SEE ALSO"}) {
    EXPECT_THAT(page, HasSubstr(std::string("\n.SH ") + section + "\n"));
  }
  EXPECT_THAT(page, HasSubstr("octet\\-run \\- Complete a prompt\n"));
  EXPECT_THAT(page, HasSubstr(".B \"\\-n, \\-\\-max\\-tokens N\"\nTokens (default: 128)\n"));
}

TEST(Man, ProtectsTextThatRoffWouldRead) {
  const std::string page = man_page(program(), run());
  EXPECT_THAT(page, HasSubstr("\n\\&.A line that begins with a dot, a \\e backslash and "
                              "\\(aqquotes\\(aq stay"));
  EXPECT_THAT(page, HasSubstr("octet run .hidden \\-n 5"));
}

TEST(Man, FormatsWithoutWarningsAndKeepsTheText) {
  if (!have_groff()) GTEST_SKIP() << "groff is not installed";
  const std::string text = formatted(man_page(program(), run()));
  EXPECT_THAT(text, Not(HasSubstr("warning")));
  EXPECT_THAT(text, Not(HasSubstr("error:")));
  EXPECT_THAT(text, HasSubstr("-n, --max-tokens N"));
  EXPECT_THAT(text, HasSubstr(".A line that begins with a dot, a \\ backslash and 'quotes' stay"));
  EXPECT_THAT(text, HasSubstr("octet run ./model -p 'Hello' | cat"));
  const std::string whole = formatted(man_page(program()));
  EXPECT_THAT(whole, Not(HasSubstr("warning")));
  EXPECT_THAT(whole, HasSubstr("Print a completion script: it's for a shell"));
}

}  // namespace
}  // namespace octet
