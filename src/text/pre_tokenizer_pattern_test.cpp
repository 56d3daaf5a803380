#include "text/pre_tokenizer_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "text/utf8.h"

namespace octet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> matches(const Pattern& pattern, std::string_view text) {
  Pattern::Searcher searcher(pattern);
  searcher.start(text);
  std::vector<std::string> found;
  while (const auto match = searcher.next())
    found.emplace_back(text.substr(match->begin, match->end - match->begin));
  return found;
}

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  return matches(Pattern::regex(pattern), text);
}

std::string refusal(std::string_view pattern) {
  try {
    Pattern::regex(pattern);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::BadInput);
    return error.message();
  }
  return "accepted";
}

// How many of all characters a pattern matches; Oniguruma's counts (Unicode 16) were taken from the
// reference.
size_t count(std::string_view pattern) {
  const Pattern compiled = Pattern::regex(pattern);
  Pattern::Searcher searcher(compiled);
  size_t total = 0;
  std::string text;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    text.clear();
    append_utf8(text, c);
    searcher.start(text);
    total += searcher.next().has_value();
  }
  return total;
}

TEST(PreTokenizerPattern, KnowsTheSameCharactersAsTheReference) {
  EXPECT_EQ(count(R"(\s)"), 25U);
  EXPECT_EQ(count(R"(\S)"), 0x110000U - 0x800U - 25U);
  EXPECT_EQ(count(R"([\S])"), 0x110000U - 0x800U - 25U);
  EXPECT_EQ(count(R"(\w)"), 144671U);
  EXPECT_EQ(count(R"(\d)"), 760U);
  EXPECT_EQ(count(R"(\p{L})"), 141028U);
  EXPECT_EQ(count(R"(\p{N})"), 1911U);
  EXPECT_EQ(count(R"([\p{M}])"), 2501U);
  EXPECT_EQ(count(R"(\p{P})"), 855U);
  EXPECT_EQ(count(R"(\p{S})"), 8514U);
  EXPECT_EQ(count(R"(\p{Han})"), 99030U);
  EXPECT_EQ(count(R"([^\p{L}\p{N}\s])"), 0x110000U - 0x800U - 141028U - 1911U - 25U);
}

TEST(PreTokenizerPattern, RepeatsARepeatBehindBraces) {
  EXPECT_THAT(matches(R"(\d{1,3}+)", "1234567"),
              ElementsAre("1234567"));  // in PCRE2 it would be possessive
  EXPECT_THAT(matches(R"(\d{1,3})", "1234567"), ElementsAre("123", "456", "7"));
  EXPECT_THAT(matches(R"(a{,2}b)", "aaab b"), ElementsAre("aab", "b"));
  EXPECT_THAT(matches(R"(a{2}?)", "aaa"), ElementsAre("aa", ""));  // '(?:a{2})?', not a lazy repeat
  EXPECT_THAT(matches(R"(a{1,2}?)", "aa"), ElementsAre("a", "a"));
  EXPECT_THAT(matches(R"(\d++5?)", "125"), ElementsAre("125"));
  EXPECT_THAT(matches(R"((?:ab)+*c)", "ababc"), ElementsAre("ababc"));
  EXPECT_THAT(matches(R"(a{b})", "a{b}"), ElementsAre("a{b}"));
}

TEST(PreTokenizerPattern, PassesOverAnEmptyMatchBehindAMatch) {
  EXPECT_THAT(matches("o|", "oxyo"), ElementsAre("o", "", "o"));
  EXPECT_THAT(matches("x*", "\u00E9xx\u00E9"), ElementsAre("", "xx", ""));
  EXPECT_THAT(matches("", ""), ElementsAre(""));
}

TEST(PreTokenizerPattern, TreatsAStringPatternAsItself) {
  EXPECT_THAT(matches(Pattern::literal("a.b|"), "axb a.b| \\s"), ElementsAre("a.b|"));
}

TEST(PreTokenizerPattern, KeepsOneLetterSetsOfRuby) {
  EXPECT_THAT(matches(R"(\h+)", "0xBEEFg"), ElementsAre("0", "BEEF"));
  EXPECT_THAT(matches(R"([\v])", "\n\v\r"), ElementsAre("\v"));
  EXPECT_THAT(matches(R"(^a$)", "a\nb\na"), ElementsAre("a", "a"));
  EXPECT_THAT(matches(R"(.+)", "a\rb\nc"), ElementsAre("a\rb", "c"));
  EXPECT_THAT(matches(R"((?i:'s|'ll))", "'S 'lL \u2019s '\u017F"),
              ElementsAre("'S", "'lL", "'\u017F"));
  EXPECT_THAT(matches(R"([a\-z\u00e9\x{4e00}-\x{4e02}])", "b-\u00E9\u4E01y"),
              ElementsAre("-", "\u00E9", "\u4E01"));
}

TEST(PreTokenizerPattern, RefusesByNameWhatItCannotCarryOver) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([a-z&&[^b]])", "'&&'"},
      {R"([[:alpha:]])", "class inside a class"},
      {R"((a)\1)", "'\\1'"},
      {R"((?<name>a))", "'(?<n'"},
      {R"((?m:.))", "'(?m:'"},
      {R"(a(?i)b|c)", "'(?i)'"},
      {R"((*FAIL))", "'(*'"},
      {R"(\Kx)", "'\\K'"},
      {R"([\W])", "complement"},
      {R"(\p{Klingon})", "'Klingon'"},
      {R"(\p{L)", "property without"},
      {R"(\pL)", "property without"},
      {R"(a)b)", "closes nothing"},
      {R"((a)", "not closed"},
      {R"([a)", "not closed"},
      {R"(*a)", "repeat '*' of nothing"},
      {R"(a|+)", "'+' of nothing"},
      {"a\\", "backslash at the end"},
      {R"(\xC3\xA9)", "raw byte"},
      {R"(\u12)", "hexadecimal"},
      {R"(\x{110000})", "no character"},
      {R"([])", "empty class"},
      {R"([z-a])", "does not compile"},
      {R"(a{3,1})", "does not compile"},
      {R"(a{99999})", "does not compile"},
      {R"([a-\d])", "range that ends in a set"},
  };
  for (const auto& [pattern, named] : cases) {
    EXPECT_THAT(refusal(pattern), HasSubstr(named)) << pattern;
    EXPECT_THAT(refusal(pattern), HasSubstr("pattern")) << pattern;
  }
  EXPECT_THAT(refusal(std::string(5000, '(') + "a" + std::string(5000, ')')),
              HasSubstr("does not compile"));
  EXPECT_THAT(refusal(std::string(20000, 'a')), HasSubstr("longer than 16384"));
}

TEST(PreTokenizerPattern, StopsAPatternThatExplodes) {
  const Pattern pattern = Pattern::regex("(?:a+)+(?:b|c)");
  Pattern::Searcher searcher(pattern);
  const std::string text(4000, 'a');
  searcher.start(text);
  EXPECT_THROW(
      {
        try {
          searcher.next();
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), Code::BadInput);
          EXPECT_THAT(error.message(), HasSubstr("gave up at byte 0 of 4000"));
          throw;
        }
      },
      Error);
}

TEST(PreTokenizerPattern, WalksLongRunsOfBlanksAndDeepGroups) {
  const std::string blanks(2'000'000, ' ');
  EXPECT_EQ(matches(R"(\s*[\r\n]+|\s+(?!\S)|\s+)", blanks + "x").size(), 2U);
  EXPECT_EQ(matches(R"((?:ab|c)+)", std::string(200'000, 'c')).size(), 1U);
}

}  // namespace
}  // namespace octet
