#include "text/detokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace octet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What leaves a scanner piece by piece, and behind them what the flush gives.
std::vector<std::string> scan(StopScanner& scanner, const std::vector<std::string>& pieces) {
  std::vector<std::string> out;
  for (const std::string& piece : pieces) out.push_back(scanner.push(piece));
  out.push_back(scanner.flush());
  return out;
}

TEST(StopScanner, FindsAStopThatBeginsInsideATokenAndSpansThree) {
  StopScanner scanner({"obarqu"});
  EXPECT_THAT(scan(scanner, {"foo", "ba", "r", "qu", "ux"}), ElementsAre("fo", "", "", "", "", ""));
  EXPECT_EQ(scanner.stopped(), 0U);
}

TEST(StopScanner, HoldsBackOnlyWhatMayBeginAStop) {
  StopScanner scanner({std::string(30, 'Z'), "\n##"});
  EXPECT_THAT(scan(scanner, {"Hello", " world", "!\n", "next\n#", " x"}),
              ElementsAre("Hello", " world", "!", "\nnext", "\n# x", ""));
  EXPECT_EQ(scanner.stopped(), std::nullopt);
}

TEST(StopScanner, GivesWhatItHeldWhenTheStreamEnds) {
  StopScanner scanner({"END"});
  EXPECT_THAT(scan(scanner, {"the EN"}), ElementsAre("the ", "EN"));
  EXPECT_EQ(scanner.stopped(), std::nullopt);
}

TEST(StopScanner, TakesTheStopThatIsCompleteFirstAndTheLongestOfThose) {
  StopScanner scanner({"c", "abc", "bcd"});
  EXPECT_THAT(scan(scanner, {"xab", "cd"}), ElementsAre("x", "", ""));
  EXPECT_EQ(scanner.stopped(), 1U);
}

TEST(StopScanner, RestartsInsideAPartialMatch) {
  StopScanner scanner({"aab"});
  EXPECT_THAT(scan(scanner, {"aa", "aa", "b!"}), ElementsAre("", "aa", "", ""));
  EXPECT_EQ(scanner.stopped(), 0U);
}

TEST(StopScanner, DependsOnNoCutOfTheStream) {
  std::mt19937 random(3);
  const std::vector<std::string> stops = {"abab", "bb", "cabc", "aaaa"};
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "aabbc"[random() % 5];
    StopScanner whole(stops);
    const std::string expected = whole.push(text) + whole.flush();
    size_t first = std::string::npos;  // end of the stop that is complete first
    for (const std::string& stop : stops) {
      const size_t at = text.find(stop);
      if (at != std::string::npos) first = std::min(first, at + stop.size());
    }
    EXPECT_EQ(whole.stopped().has_value(), first != std::string::npos);
    const std::string stop = whole.stopped() ? stops[*whole.stopped()] : "";
    EXPECT_EQ(expected + stop, text.substr(0, first));
    StopScanner cut(stops);
    std::string joined;
    for (size_t at = 0; at < text.size();) {
      const size_t length = 1 + random() % 5;
      joined += cut.push(std::string_view(text).substr(at, length));
      at += length;
    }
    joined += cut.flush();
    EXPECT_EQ(joined, expected);
    EXPECT_EQ(cut.stopped(), whole.stopped());
  }
}

TEST(StopScanner, StaysQuickForLongStopsThatNearlyMatch) {
  StopScanner scanner({std::string(4096, 'a') + "b"});
  size_t out = 0;
  for (int i = 0; i < 20000; ++i) out += scanner.push("aaaaaaaaaa").size();
  EXPECT_EQ(out, 200000U - 4096U);
}

TEST(StopScanner, WithoutStopsPassesEverything) {
  StopScanner scanner({});
  EXPECT_THAT(scan(scanner, {"a", "", "b"}), ElementsAre("a", "", "b", ""));
}

TEST(StopScanner, RefusesAnEmptyStop) {
  try {
    StopScanner scanner({"a", ""});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::BadInput);
    EXPECT_THAT(error.message(), HasSubstr("stop string 1 is empty"));
  }
}

// Bytes of U+1F600, of U+4F60 and of two characters, one token each.
const char* const kTokenizer =
    R"({"added_tokens":[{"id":9,"content":"<end>","single_word":false,"lstrip":false,
  "rstrip":false,"normalized":false,"special":true}],"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},
  "decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{"\u00f0":0,"\u0141":1,"\u013a":2,"\u0122":3,"\u00e4":4,"\u00bd":5,"\u0142":6,"!":7,"\u0120a":8},
  "merges":[]}})";

std::vector<std::string> stream(const Tokenizer& tokenizer, const std::vector<int32_t>& ids,
                                bool skip = true) {
  Detokenizer detokenizer(tokenizer, skip);
  std::vector<std::string> out;
  for (const int32_t id : ids) out.push_back(detokenizer.push(id));
  out.push_back(detokenizer.flush());
  return out;
}

TEST(Detokenizer, LetsACharacterLeaveWhole) {
  const Tokenizer tokenizer = Tokenizer::parse(kTokenizer);
  EXPECT_THAT(stream(tokenizer, {0, 1, 2, 3, 7}), ElementsAre("", "", "", "\U0001F600", "!", ""));
  EXPECT_THAT(stream(tokenizer, {4, 5, 6, 8}), ElementsAre("", "", "\u4F60", " a", ""));
}

TEST(Detokenizer, ReplacesWhatNeverBecomesACharacter) {
  const Tokenizer tokenizer = Tokenizer::parse(kTokenizer);
  EXPECT_THAT(stream(tokenizer, {0, 1, 8}), ElementsAre("", "", "\uFFFD a", ""));
  EXPECT_THAT(stream(tokenizer, {7, 0, 1}), ElementsAre("!", "", "", "\uFFFD"));
  EXPECT_THAT(stream(tokenizer, {5, 7}), ElementsAre("\uFFFD", "!", ""));
}

TEST(Detokenizer, SkipsSpecialTokensOnRequestAndIdsWithoutAToken) {
  const Tokenizer tokenizer = Tokenizer::parse(kTokenizer);
  EXPECT_THAT(stream(tokenizer, {7, 9, 570, -1}), ElementsAre("!", "", "", "", ""));
  EXPECT_THAT(stream(tokenizer, {7, 9}, false), ElementsAre("!", "<end>", ""));
  EXPECT_THAT(stream(tokenizer, {4, 5, 9, 6}), ElementsAre("", "", "", "\u4F60", ""));
}

}  // namespace
}  // namespace octet
