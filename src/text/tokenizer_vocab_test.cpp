#include "text/tokenizer_vocab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace octet {
namespace {

using testing::HasSubstr;

TEST(TokenizerVocab, KeepsTheBytesThatATokenStandsFor) {
  Vocab vocab;
  vocab.add("\u0120the", 0);     // space
  vocab.add("\u00C3\u00A9", 1);  // the two bytes of e with acute
  vocab.add("\u010A", 2);        // newline
  vocab.add("<|im end|>", 5);    // has a space: stands for itself
  vocab.add("\u4F60", 4);        // not in the byte table
  vocab.index();
  EXPECT_EQ(vocab.bytes(0), " the");
  EXPECT_EQ(vocab.bytes(1), "\u00E9");
  EXPECT_EQ(vocab.bytes(2), "\n");
  EXPECT_EQ(vocab.bytes(5), "<|im end|>");
  EXPECT_EQ(vocab.bytes(4), "\u4F60");
  EXPECT_EQ(vocab.size(), 6);
  EXPECT_EQ(vocab.count(), 5U);
  for (const int32_t hole : {3, 6, -1, INT32_MAX}) {
    EXPECT_FALSE(vocab.has(hole));
    EXPECT_EQ(vocab.bytes(hole), "");
  }
}

TEST(TokenizerVocab, TellsCodedTokensFromOthersWithTheSameBytes) {
  Vocab vocab;
  vocab.add("a\u0120b", 0);
  vocab.add("a b", 1);
  vocab.index();
  EXPECT_EQ(vocab.find("a\u0120b"), 0);
  EXPECT_EQ(vocab.find("a b"), 1);
  EXPECT_EQ(vocab.find_bytes("a b", true), 0);
  EXPECT_EQ(vocab.find_bytes("a b", false), 1);
  EXPECT_EQ(vocab.find("ab"), std::nullopt);
}

TEST(TokenizerVocab, FindsEveryTokenAndTakesMoreAfterIndexing) {
  Vocab vocab;
  const auto name = [](int32_t i) {
    return "token" + std::string(static_cast<size_t>(i % 23), 'x') + std::to_string(i);
  };
  for (int32_t i = 0; i < 3000; ++i) vocab.add(name(i), i);
  EXPECT_EQ(vocab.find(name(7)), std::nullopt) << "not indexed yet";
  vocab.index();
  for (int32_t i = 3000; i < 12000; ++i) vocab.add(name(i), i);
  for (int32_t i = 0; i < 12000; ++i) ASSERT_EQ(vocab.find(name(i)), i);
  EXPECT_EQ(vocab.find(name(12000)), std::nullopt);
  EXPECT_EQ(vocab.find(""), std::nullopt);
}

TEST(TokenizerVocab, RefusesAnIdOrATextTwice) {
  const auto message = [](auto&& act) -> std::string {
    try {
      act();
    } catch (const Error& error) {
      return error.message();
    }
    return "accepted";
  };
  Vocab vocab;
  vocab.add("a", 0);
  EXPECT_THAT(message([&] { vocab.add("b", 0); }),
              HasSubstr("id 0 belongs to two tokens, one of them \"b\""));
  vocab.add("a", 1);
  EXPECT_THAT(message([&] { vocab.index(); }),
              HasSubstr("id 1 has the same text as that of id 0: \"a\""));
}

}  // namespace
}  // namespace octet
