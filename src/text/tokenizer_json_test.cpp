// What a tokenizer.json may say, and how it is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/tokenizer.h"

namespace octet {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

json added_token(int id, const std::string& content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

// A small, right tokenizer: a, b, ab and <s>.
json base() {
  return {{"version", "1.0"},
          {"truncation", {{"max_length", 2}}},
          {"padding", nullptr},
          {"added_tokens", {added_token(3, "<s>")}},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model",
           {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}}}, {"merges", {"a b"}}}}};
}

// The message with which a text is refused; "accepted" if it is not.
std::string refusal_of(const std::string& text, const std::string& config = "") {
  try {
    Tokenizer::parse(text, config);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::BadInput) << error.message();
    return error.message();
  }
  return "accepted";
}

// The same for the base with the value at `pointer` replaced.
std::string refusal(const std::string& pointer, const json& value) {
  json changed = base();
  changed[json::json_pointer(pointer)] = value;
  return refusal_of(changed.dump());
}

std::string missing(const std::string& parent, const std::string& key) {
  json changed = base();
  changed[json::json_pointer(parent)].erase(key);
  return refusal_of(changed.dump());
}

TEST(TokenizerJson, TakesTheBaseOfTheseTests) {
  EXPECT_EQ(refusal_of(base().dump()), "accepted");
  EXPECT_THAT(Tokenizer::parse(base().dump()).encode("ab<s>ba"), ElementsAre(2, 3, 1, 0))
      << "truncation is ignored";
}

TEST(TokenizerJson, TakesBothFormsOfMergesInEitherOrder) {
  json changed = base();
  changed["model"]["merges"] = json::array({json::array({"a", "b"})});
  EXPECT_THAT(Tokenizer::parse(changed.dump()).encode("ab"), ElementsAre(2));
  const std::string early =
      R"({"model":{"merges":["#version: 0.2","a b"],"vocab":{"a":0,"b":1,"ab":2}},
      "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"decoder":{"type":"ByteLevel"}})";
  EXPECT_THAT(Tokenizer::parse(early).encode("ab"), ElementsAre(2));
}

TEST(TokenizerJson, NamesTheComponentsItDoesNotKnow) {
  EXPECT_THAT(refusal("/model/type", "Unigram"),
              HasSubstr("tokenizer.json: /model/type: model \"Unigram\" is not supported"));
  EXPECT_THAT(refusal("/normalizer", {{"type", "Lowercase"}}),
              HasSubstr("/normalizer: normalizer \"Lowercase\""));
  EXPECT_THAT(
      refusal("/normalizer",
              json::parse(
                  R"({"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"StripAccents"}]})")),
      HasSubstr("/normalizer/normalizers/1: normalizer \"StripAccents\""));
  EXPECT_THAT(refusal("/pre_tokenizer", {{"type", "Whitespace"}}),
              HasSubstr("pre-tokenizer \"Whitespace\""));
  EXPECT_THAT(refusal("/pre_tokenizer", nullptr), HasSubstr("no ByteLevel pre-tokenizer"));
  EXPECT_THAT(refusal("/pre_tokenizer", {{"type", "Digits"}, {"individual_digits", true}}),
              HasSubstr("no ByteLevel pre-tokenizer"));
  EXPECT_THAT(refusal("/pre_tokenizer",
                      json::parse(R"({"type":"Sequence","pretokenizers":[{"type":"ByteLevel",
      "add_prefix_space":false},{"type":"Digits","individual_digits":true}]})")),
              HasSubstr("\"Digits\" after ByteLevel"));
  EXPECT_THAT(refusal("/post_processor", {{"type", "BertProcessing"}}),
              HasSubstr("post-processor \"BertProcessing\""));
  EXPECT_THAT(refusal("/decoder", nullptr), HasSubstr("without a decoder"));
  EXPECT_THAT(refusal("/decoder", {{"type", "WordPiece"}}), HasSubstr("decoder \"WordPiece\""));
  EXPECT_THAT(refusal("/version", "2.0"), HasSubstr("/version: \"2.0\" is not known"));
}

TEST(TokenizerJson, TakesADecoderThatFusesBehindByteLevelOnly) {
  EXPECT_EQ(
      refusal(
          "/decoder",
          json::parse(R"({"type":"Sequence","decoders":[{"type":"ByteLevel"},{"type":"Fuse"}]})")),
      "accepted");
  EXPECT_THAT(
      refusal(
          "/decoder",
          json::parse(R"({"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"ByteLevel"}]})")),
      HasSubstr("/decoder/decoders/0: decoder \"Fuse\""));
  EXPECT_THAT(refusal("/decoder", json::parse(R"({"type":"Sequence","decoders":[]})")),
              HasSubstr("no ByteLevel decoder"));
}

TEST(TokenizerJson, RefusesModelOptionsThatChangeTokens) {
  EXPECT_THAT(refusal("/model/dropout", 0.1), HasSubstr("/model/dropout"));
  EXPECT_EQ(refusal("/model/dropout", 0.0), "accepted");
  EXPECT_THAT(refusal("/model/continuing_subword_prefix", "##"),
              HasSubstr("\"##\" is not supported"));
  EXPECT_EQ(refusal("/model/continuing_subword_prefix", ""), "accepted");
  EXPECT_THAT(refusal("/model/end_of_word_suffix", "</w>"), HasSubstr("\"</w>\" is not supported"));
  EXPECT_THAT(refusal("/model/byte_fallback", true), HasSubstr("byte 0x00 has no token"));
  EXPECT_THAT(refusal("/model/unk_token", "<unk>"),
              HasSubstr("\"<unk>\" is not in the vocabulary"));
}

TEST(TokenizerJson, RefusesBrokenVocabularies) {
  EXPECT_THAT(refusal("/model/vocab/a", 1), HasSubstr("/model/vocab: id 1 belongs to two tokens"));
  EXPECT_THAT(refusal("/model/vocab/a", -1), HasSubstr("/model/vocab/a: expected a token id"));
  EXPECT_THAT(refusal("/model/vocab/a", 0.5), HasSubstr("/model/vocab/a: expected a token id"));
  EXPECT_THAT(refusal("/model/vocab/a", "x"),
              HasSubstr("/model/vocab/a: expected a token id, got \"x\""));
  EXPECT_THAT(refusal("/model/vocab/a", 4000000000U), HasSubstr("id 4000000000 is out of range"));
  EXPECT_THAT(refusal("/model/vocab/a", 2000000000), HasSubstr("id 2000000000 is out of range"));
  EXPECT_THAT(refusal("/model/vocab", json::array()),
              AllOf(HasSubstr("/model/vocab: expected an object of token to id, got")));
  EXPECT_THAT(refusal_of(R"({"model":{"vocab":{"a":0,"b":1,"a":2},"merges":[]}})"),
              HasSubstr("the same text"));
  EXPECT_THAT(missing("/model", "vocab"), HasSubstr("/model: \"vocab\" is missing"));
}

TEST(TokenizerJson, RefusesBrokenMerges) {
  EXPECT_THAT(refusal("/model/merges/0", "a c"),
              AllOf(HasSubstr("/model/merges: merge 0"), HasSubstr("\"c\"")));
  EXPECT_THAT(refusal("/model/merges/0", "b a"), HasSubstr("names \"ba\""));
  EXPECT_THAT(refusal("/model/merges/0", "ab"),
              HasSubstr("/model/merges/0: expected two tokens with one space"));
  EXPECT_THAT(refusal("/model/merges/0", "a b c"),
              HasSubstr("/model/merges/0: expected two tokens with one space"));
  EXPECT_THAT(refusal("/model/merges/0", {"a"}), HasSubstr("expected two tokens, got 1"));
  EXPECT_THAT(refusal("/model/merges/0", {"a", "b", "b"}),
              HasSubstr("expected two tokens, got more"));
  EXPECT_THAT(refusal("/model/merges/0", {1, 2}),
              HasSubstr("/model/merges/0: expected a token, got 1"));
  EXPECT_THAT(refusal("/model/merges/0", 7), HasSubstr("/model/merges/0: expected \"left right\""));
  EXPECT_THAT(refusal("/model/merges", "a b"),
              HasSubstr("/model/merges: expected an array, got \"a b\""));
  EXPECT_THAT(missing("/model", "merges"), HasSubstr("/model: \"merges\" is missing"));
}

TEST(TokenizerJson, RefusesBrokenAddedTokens) {
  EXPECT_THAT(refusal("/added_tokens/0/id", 7),
              HasSubstr("added token \"<s>\" has id 7, expected 3 (the next free one)"));
  EXPECT_THAT(refusal("/added_tokens/0/content", "ab"),
              HasSubstr("has id 3, expected 2 (its id in the vocabulary)"));
  EXPECT_THAT(refusal("/added_tokens/0/content", ""),
              HasSubstr("/added_tokens/0: the content is empty"));
  EXPECT_THAT(refusal("/added_tokens/0/id", -3),
              HasSubstr("/added_tokens/0/id: expected a token id"));
  EXPECT_THAT(refusal("/added_tokens/0/id", 99999999), HasSubstr("id 99999999 is out of range"));
  EXPECT_THAT(refusal("/added_tokens/0/special", "yes"),
              HasSubstr("/added_tokens/0/special: expected true or false"));
  EXPECT_THAT(refusal("/added_tokens/0", "<s>"),
              HasSubstr("/added_tokens/0: expected an object, got \"<s>\""));
  EXPECT_THAT(refusal("/added_tokens", json::object()),
              HasSubstr("/added_tokens: expected an array"));
  EXPECT_THAT(missing("/added_tokens/0", "content"), HasSubstr("\"id\" or \"content\" is missing"));
  EXPECT_EQ(refusal("/added_tokens/1", added_token(3, "<s>")), "accepted")
      << "the same twice is harmless";
  EXPECT_THAT(refusal("/added_tokens/1", added_token(4, "<s>")),
              HasSubstr("listed before with other values"));
}

TEST(TokenizerJson, RefusesBrokenComponents) {
  EXPECT_THAT(refusal("/pre_tokenizer", {{"type", "ByteLevel"}}),
              HasSubstr("\"add_prefix_space\" is missing"));
  EXPECT_THAT(refusal("/pre_tokenizer", "ByteLevel"),
              HasSubstr("/pre_tokenizer: expected an object or null"));
  EXPECT_THAT(refusal("/pre_tokenizer", json::array()),
              HasSubstr("/pre_tokenizer: expected an object"));
  json split = {{"type", "Split"},
                {"pattern", {{"Regex", "a(?<n>b)"}}},
                {"behavior", "Isolated"},
                {"invert", false}};
  EXPECT_THAT(refusal("/pre_tokenizer", split),
              HasSubstr("/pre_tokenizer/pattern: pattern \"a(?<n>b)\" uses a group"));
  split["behavior"] = "isolated";
  EXPECT_THAT(refusal("/pre_tokenizer", split),
              HasSubstr("split behavior \"isolated\" is not known"));
  json post = json::parse(
      R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},
      {"Sequence":{"id":"A","type_id":0}}],"pair":[],"special_tokens":{"<s>":{"id":"<s>","ids":[3],"tokens":["<s>"]}}})");
  EXPECT_EQ(refusal("/post_processor", post), "accepted");
  json changed = post;
  changed["special_tokens"]["<s>"]["ids"] = {4};
  EXPECT_THAT(refusal("/post_processor", changed), HasSubstr("/post_processor: id 4 has no token"));
  changed["special_tokens"] = json::object();
  EXPECT_THAT(refusal("/post_processor", changed),
              HasSubstr("/post_processor/special_tokens: \"<s>\" is missing"));
  changed = post;
  changed["single"][1]["Sequence"]["id"] = "B";
  EXPECT_THAT(refusal("/post_processor", changed), HasSubstr("/post_processor/single/1/Sequence"));
  EXPECT_THAT(refusal("/post_processor", {{"type", "Sequence"}, {"processors", {post, post}}}),
              HasSubstr("second Template"));
}

TEST(TokenizerJson, RefusesWhatIsNotOneJsonObject) {
  const std::string good = base().dump();
  for (const std::string& text :
       {std::string(), std::string("  "), std::string("[]"), std::string("null"), std::string("{]"),
        good.substr(0, good.size() / 2), good + "{}", std::string("\xFF\xFE{\"a\":1}"),
        std::string(100, '\0')}) {
    EXPECT_THAT(refusal_of(text), HasSubstr("tokenizer.json: ")) << text.substr(0, 40);
  }
  EXPECT_THAT(refusal_of("{}"), HasSubstr("\"model\" is missing"));
  EXPECT_THAT(missing("", "decoder"), HasSubstr("without a decoder"));
}

// Every prefix of a file, and every file with one byte changed, is taken or refused, never more
// than that.
TEST(TokenizerJson, SurvivesTruncationAndDamage) {
  const std::string good = base().dump();
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(refusal_of(good.substr(0, length)), "accepted");
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char byte : {'\0', '"', '}', '[', '9', '\\', '\xC3'}) {
      std::string damaged = good;
      damaged[at] = byte;
      refusal_of(damaged);
    }
  }
}

TEST(TokenizerJson, RefusesWordsThatOnlyBeginLikeNull) {
  for (const char* key : {"dropout", "unk_token", "continuing_subword_prefix", "ignore_merges"}) {
    std::string text = base().dump();
    text.insert(text.find("\"merges\""), fmt::format("\"{}\":nulx,", key));
    EXPECT_THAT(refusal_of(text),
                HasSubstr(fmt::format("tokenizer.json: /model/{}: expected", key)));
  }
}

TEST(TokenizerJson, SurvivesDeepNesting) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  for (const char* key : {"normalizer", "pre_tokenizer", "post_processor", "decoder", "model",
                          "added_tokens", "other"}) {
    EXPECT_NE(refusal_of(std::string("{\"") + key + "\":" + deep + "}"), "accepted") << key;
  }
  json nested = {{"type", "NFC"}};
  for (int i = 0; i < 20; ++i) nested = {{"type", "Sequence"}, {"normalizers", {nested}}};
  EXPECT_THAT(refusal("/normalizer", nested), HasSubstr("more than 8 levels"));
  EXPECT_NE(refusal_of(std::string(500'000, '{')), "accepted");
}

}  // namespace
}  // namespace octet
