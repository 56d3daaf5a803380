#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"

namespace octet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// a 0, b 1, ab 2, space 3, then the added <s> 4 and </s> 5; the post-processor puts <s> before the
// text.
const std::string kJson = R"({"added_tokens":[
  {"id":4,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},
  {"id":5,"content":"</s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":false}],
  "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"decoder":{"type":"ByteLevel"},
  "post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},
  {"Sequence":{"id":"A","type_id":0}}],"pair":[],"special_tokens":{"<s>":{"id":"<s>","ids":[4],"tokens":["<s>"]}}},
  "model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"\u0120":3},"merges":["a b"]}})";

std::string message(const auto& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::BadInput);
    return error.message();
  }
  return "accepted";
}

TEST(Tokenizer, AddsWhatThePostProcessorSaysUnlessAskedNotTo) {
  const Tokenizer tokenizer = Tokenizer::parse(kJson);
  EXPECT_THAT(tokenizer.encode("ab a"), ElementsAre(4, 2, 3, 0));
  EXPECT_THAT(tokenizer.encode("ab a", false), ElementsAre(2, 3, 0));
  EXPECT_THAT(tokenizer.encode(""), ElementsAre(4));
  EXPECT_THAT(tokenizer.encode("", false), ElementsAre());
  EXPECT_THAT(tokenizer.encode("<s>a", false), ElementsAre(4, 0))
      << "added tokens in the text count either way";
}

TEST(Tokenizer, FollowsTheConfigsBosAndEosWhereItNamesThem) {
  const auto ids = [](const std::string& config) {
    return Tokenizer::parse(kJson, config).encode("a");
  };
  EXPECT_THAT(ids(R"({"bos_token":"<s>","eos_token":"</s>"})"), ElementsAre(4, 0));
  EXPECT_THAT(ids(R"({"bos_token":"<s>","eos_token":"</s>","add_bos_token":false})"),
              ElementsAre(0));
  EXPECT_THAT(
      ids(R"({"bos_token":"<s>","eos_token":"</s>","add_bos_token":true,"add_eos_token":true})"),
      ElementsAre(4, 0, 5));
  EXPECT_THAT(ids(R"({"bos_token":{"content":"<s>"},"add_bos_token":true})"), ElementsAre(4, 0));
  EXPECT_THAT(ids(R"({"bos_token":null,"add_bos_token":true,"add_eos_token":null})"),
              ElementsAre(0));
  EXPECT_THAT(message([&] { ids(R"({"bos_token":"<x>","add_bos_token":true})"); }),
              HasSubstr("tokenizer_config.json: /add_bos_token: true, but the token \"<x>\" is not "
                        "in the vocabulary"));
  EXPECT_THAT(message([&] { ids(R"({"bos_token":7})"); }),
              HasSubstr("tokenizer_config.json: /bos_token: expected a string, or an object with a "
                        "string \"content\", got 7"));
  EXPECT_THAT(message([&] { ids(R"({"add_bos_token":"yes"})"); }),
              HasSubstr("/add_bos_token: expected true or false, got \"yes\""));
  EXPECT_THAT(message([&] { ids("[]"); }),
              HasSubstr("tokenizer_config.json: /: expected an object, got an array"));
  EXPECT_THAT(message([&] { ids("{"); }), HasSubstr("tokenizer_config.json: this is not JSON: "));
}

TEST(Tokenizer, NamesBosAndEos) {
  const Tokenizer tokenizer =
      Tokenizer::parse(kJson, R"({"bos_token":"<s>","eos_token":{"content":"</s>"}})");
  EXPECT_EQ(tokenizer.bos(), 4);
  EXPECT_EQ(tokenizer.eos(), 5);
  EXPECT_EQ(tokenizer.bos_text(), "<s>");
  EXPECT_EQ(tokenizer.eos_text(), "</s>");
  EXPECT_TRUE(tokenizer.is_special(5)) << "the config makes it special";
  const Tokenizer bare = Tokenizer::parse(kJson, R"({"eos_token":"<other>"})");
  EXPECT_EQ(bare.bos(), std::nullopt);
  EXPECT_EQ(bare.bos_text(), "");
  EXPECT_EQ(bare.eos(), std::nullopt) << "not in the vocabulary";
  EXPECT_EQ(bare.eos_text(), "<other>");
  EXPECT_FALSE(bare.is_special(5));
}

TEST(Tokenizer, SplitsAtABosTokenThatOnlyTheModelKnows) {
  EXPECT_THAT(Tokenizer::parse(kJson).encode("ab", false), ElementsAre(2));
  const Tokenizer tokenizer = Tokenizer::parse(kJson, R"({"eos_token":"b"})");
  EXPECT_THAT(tokenizer.encode("ab", false), ElementsAre(0, 1));
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{0, 1}, true), "a");
}

TEST(Tokenizer, LooksUpTokens) {
  const Tokenizer tokenizer = Tokenizer::parse(kJson);
  EXPECT_EQ(tokenizer.size(), 6);
  EXPECT_EQ(tokenizer.id_of("\u0120"), 3);
  EXPECT_EQ(tokenizer.id_of(" "), std::nullopt);
  EXPECT_EQ(tokenizer.id_of("<s>"), 4);
  EXPECT_EQ(tokenizer.token_bytes(3), " ");
  EXPECT_TRUE(tokenizer.is_special(4));
  EXPECT_FALSE(tokenizer.is_special(0));
}

TEST(Tokenizer, GivesNothingForIdsInThePaddingOfAModelsVocabulary) {
  const Tokenizer tokenizer = Tokenizer::parse(kJson);
  for (const int32_t id : {6, 570, INT32_MAX, -1, INT32_MIN}) {
    EXPECT_EQ(tokenizer.token_bytes(id), "");
    EXPECT_FALSE(tokenizer.is_special(id));
    EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{0, id, 1}, true), "ab");
  }
}

TEST(Tokenizer, NamesTheByteWhereAPromptIsNotUtf8) {
  const Tokenizer tokenizer = Tokenizer::parse(kJson);
  EXPECT_THAT(message([&] { tokenizer.encode("caf\xE9 ole"); }),
              HasSubstr("not UTF-8: byte 3 of 8 is 0xE9"));
  EXPECT_THAT(message([&] { tokenizer.encode("ab\xED\xA0\x80"); }),
              HasSubstr("byte 2 of 5 is 0xED"));
  EXPECT_EQ(message([&] { tokenizer.encode(std::string("a\0b", 3)); }), "accepted");
}

TEST(Tokenizer, ServesManyThreadsAtOnce) {
  const Tokenizer tokenizer = Tokenizer::load("testing/data/tokenizers/deepseek");
  const std::string text = "Count 12345 apples, \u4F60\u597D and they're red!\n";
  const std::vector<int32_t> expected = tokenizer.encode(text);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i)
        wrong += tokenizer.encode(text) != expected || tokenizer.decode(expected, false) != text;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Tokenizer, LoadsAFolderAndNamesItInErrors) {
  const std::filesystem::path dir = std::filesystem::path(testing::TempDir()) /
                                    (std::to_string(getpid()) + "octet_tokenizer_test");
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  EXPECT_THAT(message([&] { Tokenizer::load(dir); }),
              HasSubstr("octet_tokenizer_test\" has no tokenizer.json"));
  std::ofstream(dir / "tokenizer.json") << kJson;
  EXPECT_EQ(Tokenizer::load(dir).bos(), std::nullopt);
  std::ofstream(dir / "tokenizer_config.json") << R"({"bos_token":"<s>","chat_template":"x"})";
  EXPECT_EQ(Tokenizer::load(dir).bos(), 4);
  std::ofstream(dir / "tokenizer.json") << "{\"version\":1}";
  EXPECT_THAT(message([&] { Tokenizer::load(dir); }),
              HasSubstr("octet_tokenizer_test: tokenizer.json: /version: expected a string"));
  std::filesystem::remove(dir / "tokenizer.json");
  std::filesystem::create_directory(dir / "tokenizer.json");
  EXPECT_THAT(message([&] { Tokenizer::load(dir); }), HasSubstr("is not a regular file"));
  std::filesystem::remove(dir / "tokenizer.json");
  ASSERT_EQ(mkfifo((dir / "tokenizer.json").c_str(), 0600), 0);
  EXPECT_THAT(message([&] { Tokenizer::load(dir); }), HasSubstr("is not a regular file"));
  std::filesystem::remove_all(dir);
}

TEST(Tokenizer, TakesAnAddedTokenInItsNormalizedForm) {
  // The content is a letter with its mark apart; with NFC both spellings are one token, which
  // decodes to the joined form.
  std::string json = kJson;
  json.replace(json.find("</s>"), 4, "e\\u0301");
  json.replace(json.find("\"normalized\":false,\"special\":false"), 18, "\"normalized\":true");
  json.insert(json.size() - 1, R"(,"normalizer":{"type":"NFC"})");
  const Tokenizer tokenizer = Tokenizer::parse(json);
  EXPECT_THAT(tokenizer.encode("ae\u0301\u00E9", false), ElementsAre(0, 5, 5));
}

}  // namespace
}  // namespace octet
