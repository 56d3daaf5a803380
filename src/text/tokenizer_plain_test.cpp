// Plain (SentencePiece style) tokenizers: what their files may say beside what the goldens hold,
// and how the rest is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/detokenizer.h"
#include "text/token_decoder.h"
#include "text/tokenizer.h"

namespace octet {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using Ids = std::vector<int32_t>;

// a 0, b 1, the space mark 2, mark+a 3, the bytes of U+00E9 4 and 5, line feed 6.
json base() {
  return json::parse(R"({"version":"1.0","added_tokens":[],
  "normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"\u2581"},
    {"type":"Replace","pattern":{"String":" "},"content":"\u2581"}]},
  "pre_tokenizer":null,"post_processor":null,
  "decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"\u2581"},"content":" "},
    {"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]},
  "model":{"type":"BPE","byte_fallback":true,"fuse_unk":true,"unk_token":null,
    "vocab":{"a":0,"b":1,"\u2581":2,"\u2581a":3,"<0xC3>":4,"<0xA9>":5,"<0x0A>":6},
    "merges":["\u2581 a"]}})");
}

Tokenizer make(const json& value) {
  return Tokenizer::parse(value.dump());
}

std::string refusal(const std::string& pointer, const json& value) {
  json changed = base();
  changed[json::json_pointer(pointer)] = value;
  try {
    make(changed);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::BadInput) << error.message();
    return error.message();
  }
  return "accepted";
}

std::vector<std::string> stream(const Tokenizer& tokenizer, const Ids& ids) {
  Detokenizer detokenizer(tokenizer, true);
  std::vector<std::string> out;
  for (const int32_t id : ids) out.push_back(detokenizer.push(id));
  out.push_back(detokenizer.flush());
  return out;
}

TEST(PlainTokenizer, MarksSpacesAndFallsBackToBytes) {
  const Tokenizer tokenizer = make(base());
  EXPECT_THAT(tokenizer.encode("a b"), ElementsAre(3, 2, 1));
  EXPECT_THAT(tokenizer.encode("\u00E9\n"), ElementsAre(2, 4, 5, 6));
  EXPECT_THAT(tokenizer.encode(""), ElementsAre());
  EXPECT_THAT(tokenizer.encode("a?b"), ElementsAre(3, 1)) << "no bytes, no unknown token: nothing";
}

TEST(PlainTokenizer, SaysTheBytesOfATokenInsideAText) {
  const Tokenizer tokenizer = make(base());
  EXPECT_EQ(tokenizer.token_bytes(3), " a");
  EXPECT_EQ(tokenizer.token_bytes(4), "\xC3");
  EXPECT_EQ(tokenizer.token_bytes(7), "");
  EXPECT_EQ(tokenizer.spelled(3), "\u2581a");
  EXPECT_EQ(tokenizer.id_of("\u2581a"), 3);
}

TEST(PlainTokenizer, StripsTheFirstSpaceOnceAndOnlyWhereTheTextBegins) {
  const Tokenizer tokenizer = make(base());
  EXPECT_THAT(stream(tokenizer, {2, 3, 3}), ElementsAre("", " a", " a", ""));
  EXPECT_THAT(stream(tokenizer, {0, 3}), ElementsAre("a", " a", ""));
  EXPECT_THAT(stream(tokenizer, {570, 3}), ElementsAre("", "a", ""));
}

TEST(PlainTokenizer, JoinsByteTokensToCharactersAndReplacesBrokenOnesAlike) {
  const Tokenizer tokenizer = make(base());
  EXPECT_THAT(stream(tokenizer, {0, 4, 5, 1}), ElementsAre("a", "", "\u00E9", "b", ""));
  EXPECT_THAT(stream(tokenizer, {0, 4, 1}), ElementsAre("a", "", "\uFFFDb", ""));
  EXPECT_THAT(stream(tokenizer, {0, 4}), ElementsAre("a", "", "\uFFFD"));
  EXPECT_THAT(stream(tokenizer, {5, 4, 5}), ElementsAre("\uFFFD", "", "\u00E9", ""));
  EXPECT_EQ(tokenizer.decode(Ids{5, 4, 5}, true), "\uFFFD\u00E9");
}

TEST(PlainTokenizer, TakesAModelBeforeItsPreTokenizer) {
  // An object of nlohmann::json keeps its keys in order: "model" comes before "pre_tokenizer".
  const std::string text = base().dump();
  ASSERT_LT(text.find("\"model\""), text.find("\"pre_tokenizer\""));
  json without = base();
  without.erase("pre_tokenizer");
  EXPECT_THAT(make(without).encode("a"), ElementsAre(3));
  EXPECT_THAT(Tokenizer::parse(R"({"pre_tokenizer":null,)" + without.dump().substr(1)).encode("a"),
              ElementsAre(3));
  const std::string twice = R"({"pre_tokenizer":null,)" + base().dump().substr(1);
  EXPECT_THROW(Tokenizer::parse(twice), Error) << "given twice";
}

TEST(PlainTokenizer, EncodesALongTextWithoutAPreTokenizerInLittleTime) {
  const Tokenizer tokenizer = make(base());
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "a b ";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(tokenizer.encode(text).size(), 600'001U);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 20) << "quadratic work on 800 KB would take hours";
}

TEST(PlainTokenizer, ReadsMetaspaceOfOlderFiles) {
  const auto ids = [](const std::string& pre_tokenizer) {
    json changed = base();
    changed["normalizer"] = nullptr;
    changed["pre_tokenizer"] = json::parse(pre_tokenizer);
    return make(changed).encode("a");
  };
  EXPECT_THAT(ids(R"({"type":"Metaspace","replacement":"\u2581","add_prefix_space":true})"),
              ElementsAre(3));
  EXPECT_THAT(ids(R"({"type":"Metaspace","replacement":"\u2581","add_prefix_space":false,
                      "prepend_scheme":"never","split":null})"),
              ElementsAre(0));
  EXPECT_THAT(refusal("/pre_tokenizer", json::parse(R"({"type":"Metaspace","replacement":"\u2581",
                      "add_prefix_space":false})")),
              HasSubstr("/pre_tokenizer/add_prefix_space: false does not go with"));
}

TEST(PlainTokenizer, RefusesBrokenMetaspaces) {
  EXPECT_THAT(refusal("/pre_tokenizer", {{"type", "Metaspace"}}),
              HasSubstr("/pre_tokenizer: \"replacement\" is missing"));
  EXPECT_THAT(refusal("/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "ab"}}),
              HasSubstr("/pre_tokenizer/replacement: expected one character, got \"ab\""));
  EXPECT_THAT(refusal("/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", ""}}),
              HasSubstr("expected one character"));
  EXPECT_THAT(refusal("/pre_tokenizer",
                      {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "last"}}),
              HasSubstr("/pre_tokenizer/prepend_scheme: \"last\" is not known"));
  EXPECT_THAT(refusal("/pre_tokenizer", json::parse(R"({"type":"Sequence","pretokenizers":[
                      {"type":"Metaspace","replacement":"_"},
                      {"type":"ByteLevel","add_prefix_space":false}]})")),
              HasSubstr("Metaspace and ByteLevel in one tokenizer"));
}

TEST(PlainTokenizer, RefusesNormalizersItDoesNotKnowOrThatGrowTexts) {
  EXPECT_THAT(refusal("/normalizer", {{"type", "Lowercase"}}),
              HasSubstr("/normalizer: normalizer \"Lowercase\" is not supported"));
  json replace = {{"type", "Replace"}, {"pattern", {{"String", ""}}}, {"content", "x"}};
  EXPECT_THAT(refusal("/normalizer", replace), HasSubstr("/normalizer/pattern: an empty text"));
  replace["pattern"] = {{"Regex", "(a)"}};
  replace["content"] = "$1";
  EXPECT_THAT(refusal("/normalizer", replace), HasSubstr("\"$\" (a group's text)"));
  replace["content"] = "";
  replace["pattern"] = {{"Regex", "(?<n>a)"}};
  EXPECT_THAT(refusal("/normalizer", replace), HasSubstr("/normalizer/pattern: pattern"));
  replace["pattern"] = {{"String", "a"}};
  replace["content"] = std::string(65, 'x');
  EXPECT_THAT(refusal("/normalizer", replace),
              HasSubstr("/normalizer/content: expected at most 64 bytes, got 65"));
  replace["content"] = std::string(60, 'a');
  EXPECT_THAT(refusal("/normalizer", {{"type", "Sequence"}, {"normalizers", {replace, replace}}}),
              HasSubstr("/normalizer: could make a text 3600 times as long"));
  EXPECT_THAT(refusal("/normalizer",
                      {{"type", "Sequence"}, {"normalizers", json(65, json{{"type", "NFC"}})}}),
              HasSubstr("has 65 steps, at most 64"));
}

TEST(PlainTokenizer, RefusesDecodersThatAStreamCannotFollow) {
  const auto with = [](const std::string& stages) {
    return refusal("/decoder", json::parse(R"({"type":"Sequence","decoders":[)" + stages + "]}"));
  };
  const std::string replace = R"({"type":"Replace","pattern":{"String":"_"},"content":" "})";
  const std::string metaspace = R"({"type":"Metaspace","replacement":"_"})";
  EXPECT_EQ(with(replace + "," + metaspace + R"(,{"type":"ByteFallback"},{"type":"Fuse"})"),
            "accepted");
  EXPECT_THAT(with(R"({"type":"Fuse"},)" + replace),
              HasSubstr("/decoder/decoders/1: decoder \"Replace\" behind ByteFallback or Fuse"));
  EXPECT_THAT(with(R"({"type":"Fuse"},)" + metaspace), HasSubstr("\"Metaspace\" behind"));
  EXPECT_THAT(with(R"({"type":"ByteFallback"},{"type":"Strip","content":" ","start":1,"stop":0})"),
              HasSubstr("\"Strip\" behind"));
  EXPECT_THAT(with(R"({"type":"Strip","content":" ","start":0,"stop":1})"),
              HasSubstr("/decoder/decoders/0/stop: Strip at the end is not supported"));
  EXPECT_THAT(with(R"({"type":"Replace","pattern":{"Regex":"_"},"content":" "})"),
              HasSubstr("/decoder/decoders/0/pattern: a Regex is not supported"));
  EXPECT_THAT(with(R"({"type":"BPEDecoder","suffix":"</w>"})"),
              HasSubstr("decoder \"BPEDecoder\" is not supported"));
  EXPECT_THAT(with(R"({"type":"ByteLevel"})"), HasSubstr("no ByteLevel pre-tokenizer"));
  const std::string grow =
      R"({"type":"Replace","pattern":{"String":"a"},"content":"aaaaaaaaaaaaaaaaaaaa"})";
  EXPECT_THAT(with(grow + "," + grow), HasSubstr("could make a token more than 64 times as long"));
  std::string many = metaspace;
  for (int i = 0; i < 8; ++i) many += "," + metaspace;
  EXPECT_THAT(with(many), HasSubstr("more than 8 stages"));
}

TEST(PlainTokenizer, RefusesAByteLevelPreTokenizerWithAnotherDecoder) {
  json changed = base();
  changed["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  changed["model"]["byte_fallback"] = false;
  try {
    make(changed);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(),
                HasSubstr("decoder \"Replace\" is not supported with a ByteLevel pre-tokenizer"));
  }
}

TEST(PlainTokenizer, RefusesAnUnknownTokenOutsideTheVocabulary) {
  EXPECT_THAT(refusal("/model/unk_token", "<unk>"),
              HasSubstr("/model/unk_token: \"<unk>\" is not in the vocabulary"));
}

TEST(TokenDecoder, TakesNamesOfBytesInEitherCaseAndNothingElse) {
  TokenDecoder decoder;
  decoder.byte_fallback = true;
  EXPECT_EQ(decoder.bytes("<0xaB>", false), "\xAB");
  for (const char* other : {"<0xAB", "<0xABC>", "<0xG0>", "<0x A>", "<0x-1>", "0xAB><"})
    EXPECT_EQ(decoder.bytes(other, false), other);
  EXPECT_EQ(TokenDecoder{}.bytes("<0x41>", true), "<0x41>");
}

}  // namespace
}  // namespace octet
