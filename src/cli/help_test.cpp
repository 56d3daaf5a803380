#include "cli/help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/flags_test_tables.h"
#include "cli/help_format.h"

namespace octet {
namespace {

using test_tables::program;
using test_tables::run;
using test_tables::serve;
using testing::HasSubstr;
using testing::Not;

TEST(Help, ShowsUsageArgumentsFlagsDefaultsExamplesAndExits) {
  const std::string text = help_text(program(), serve());
  EXPECT_THAT(text,
              HasSubstr("octet serve: Answer requests\n\nUsage: octet serve [FLAGS] MODEL\n"));
  EXPECT_THAT(text,
              HasSubstr("\nArguments:\n  MODEL                             The checkpoint\n"));
  EXPECT_THAT(text, HasSubstr("\n  -m, --model PATH                  The checkpoint\n"));
  EXPECT_THAT(text,
              HasSubstr("\n      --port N                      TCP port (0 to 65535; default: "
                        "8000)\n"));
  EXPECT_THAT(text,
              HasSubstr("\n      --[no-]enable-prefix-caching  Share prefixes (default: on)\n"));
  EXPECT_THAT(text, HasSubstr("\n  -tp, --tensor-parallel-size N     Ranks (default: 1)\n"));
  EXPECT_THAT(text, HasSubstr("\n      --max-model-len N             Longest context (or auto)\n"));
  EXPECT_THAT(text, HasSubstr("-h, --help[=WORD]"));
  EXPECT_THAT(text, HasSubstr("8k is 8000, 8K is 8192"));
  EXPECT_THAT(text, HasSubstr("\nExit status:\n    0   done\n"));
  EXPECT_THAT(text, HasSubstr("\n  130   interrupted by the user\n"));
}

TEST(Help, ShowsPositionalsInCapitalsWithTheirChoices) {
  const std::string text = help_text(program(), find_command(program(), "completion"));
  EXPECT_THAT(text, HasSubstr("Usage: octet completion [FLAGS] SHELL\n"));
  EXPECT_THAT(text, HasSubstr("  SHELL                             The shell (one of: bash, zsh, "
                              "fish)\n"));
}

TEST(Help, GroupsFlagsInTableOrderAndTakesTheCommandsOwnExits) {
  const std::string text = help_text(program(), run());
  const size_t options = text.find("\nOptions:\n");
  const size_t sampling = text.find("\nSampling:\n");
  const size_t help = text.find("\nHelp:\n");
  EXPECT_LT(options, sampling);
  EXPECT_LT(sampling, help);
  EXPECT_NE(help, std::string::npos);
  EXPECT_GT(text.find("--top-k"), sampling);
  EXPECT_LT(text.find("--stop"), sampling);
  EXPECT_THAT(text, HasSubstr("\nExamples:\n  octet run ./model -p 'Hello' | cat\n      Continue"));
  EXPECT_THAT(text, HasSubstr("    0   answered\n    4   the disk is full\n"));
  EXPECT_THAT(text, Not(HasSubstr("interrupted")));
  EXPECT_THAT(text, HasSubstr("--prefer w8a8|w8a16"));
  EXPECT_THAT(text, HasSubstr("--stop TEXT                   Stop text (may be repeated)\n"));
  EXPECT_THAT(text, HasSubstr("--logprobs[=N]                Top K (1 without a value)\n"));
}

TEST(Help, ShowsTellingBoundsOnly) {
  CommandSpec spec = run();
  spec.flags = {{.name = "top-p", .kind = FlagKind::Number, .help = "mass", .min = 0, .max = 1},
                {.name = "top-k", .kind = FlagKind::Integer, .help = "best", .min = 0, .max = 1e9}};
  const std::string text = help_text(program(), spec);
  EXPECT_THAT(text, HasSubstr("mass (0 to 1)\n"));
  EXPECT_THAT(text, HasSubstr("best\n"));
}

TEST(Help, StaysWithinAHundredColumns) {
  CommandSpec spec = run();
  std::string long_help;
  for (int i = 0; i < 60; ++i) long_help += "word" + std::to_string(i) + " ";
  long_help.pop_back();
  spec.flags.push_back(
      {.name = "a-very-long-name-of-a-flag-indeed", .kind = FlagKind::Text, .help = long_help});
  spec.description = long_help;
  std::istringstream lines(help_text(program(), spec) + overview(program()));
  size_t widest = 0;
  for (std::string line; std::getline(lines, line);) {
    widest = std::max(widest, line.size());
    EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
  }
  EXPECT_LE(widest, 100u);
  EXPECT_GT(widest, 90u);
}

TEST(Help, ShowsOnlyTheFlagsAboutAWord) {
  EXPECT_THAT(help_text(program(), run(), "top-p"), testing::StartsWith("      --top-p X"));
  const std::string sampling = help_text(program(), run(), "sampling");
  EXPECT_THAT(sampling, HasSubstr("--top-k"));
  EXPECT_THAT(sampling, Not(HasSubstr("--json")));
  EXPECT_THAT(help_text(program(), run(), "TEMPLATE"), HasSubstr("--chat"));
  EXPECT_THAT(help_text(program(), run(), "-n"), HasSubstr("--max-tokens"));
  EXPECT_THAT(help_text(program(), run(), "n-predict"), HasSubstr("--max-tokens"));
  EXPECT_THROW(help_text(program(), run(), "nonsense"), Error);
}

TEST(Help, OverviewListsEveryCommand) {
  const std::string text = overview(program());
  EXPECT_THAT(text, testing::StartsWith("octet 1.2.3: FP8 inference\n\nUsage: octet COMMAND"));
  EXPECT_THAT(text, HasSubstr("\n  run         Complete a prompt\n"));
  EXPECT_THAT(text, HasSubstr("\n  completion  Print a completion script: it's for a shell\n"));
  EXPECT_THAT(text, HasSubstr("octet run ./model -p Hi\n"));
  EXPECT_THAT(text, HasSubstr("   70   a bug of octet\n"));
}

TEST(Help, MarkdownKeepsTablesWhole) {
  const std::string text = cli_markdown(program());
  EXPECT_THAT(text, HasSubstr("| [`run`](#octet-run) | Complete a prompt |\n"));
  EXPECT_THAT(text, HasSubstr("| `--prefer w8a8\\|w8a16` | Scheme |\n"));
  EXPECT_THAT(text,
              HasSubstr("| `--chat` | Apply the template \\| as &lt;text> with \\*stars\\* and "
                        "under\\_scores |\n"));
  EXPECT_THAT(text, HasSubstr("| `-tp`, `--tensor-parallel-size N` | Ranks (default: 1) |\n"));
  EXPECT_THAT(text, HasSubstr("```\noctet run ./model -p 'Hello' | cat\n```\n"));
}

TEST(Wrap, BreaksBetweenWordsAndCountsCharacters) {
  EXPECT_EQ(wrap("aa bb cc", 5, 0), "aa bb\ncc\n");
  EXPECT_EQ(wrap("aa bb cc", 7, 2), "  aa bb\n  cc\n");
  EXPECT_EQ(wrap("abcdefgh i", 4, 0), "abcdefgh\ni\n");
  EXPECT_EQ(wrap("a\n\nb", 10, 2), "  a\n\n  b\n");
  EXPECT_EQ(wrap("", 10, 2), "\n");
  EXPECT_EQ(wrap("\xc3\xa4\xc3\xa4 \xc3\xa4\xc3\xa4 x", 5, 0),
            "\xc3\xa4\xc3\xa4 \xc3\xa4\xc3\xa4\nx\n");
}

}  // namespace
}  // namespace octet
