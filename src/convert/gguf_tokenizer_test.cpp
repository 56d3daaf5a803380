#include "convert/gguf_tokenizer.h"

#include <nlohmann/json.hpp>

#include "testing/broken_files.h"
#include "testing/tiny_gguf.h"
#include "text/tokenizer_json.h"

namespace octet {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class GgufTokenizerTest : public testing::Test {
 protected:
  GgufTokenizer read(const TinyGguf& file) const {
    const GgufFile open = GgufFile::open(file.write(folder_.path() / "f.gguf"));
    return read_gguf_tokenizer(open, 300, 128);
  }
  json tokenizer(const TinyGguf& file) const { return json::parse(read(file).tokenizer_json); }
  json config(const TinyGguf& file) const { return json::parse(read(file).tokenizer_config_json); }

  // The message of what `spoil` makes wrong, with the exit status before it.
  std::string refusal(const std::function<void(TinyGguf&)>& spoil) const {
    TinyGguf file = base_;
    spoil(file);
    try {
      read(file);
    } catch (const Error& error) {
      return fmt::format("{} {}", exit_status(error.code()), error.message());
    }
    return "nothing was thrown";
  }

  TinyGguf base_ = tiny_gguf();
  TinyFolder folder_;
};

TEST_F(GgufTokenizerTest, PutsSpecialTokensWhereTransformersLooks) {
  base_.set_text("tokenizer.chat_template", "{{ messages }}");
  base_.set_integer("tokenizer.ggml.padding_token_id", 257);
  base_.set_integer("tokenizer.ggml.unknown_token_id", 0);
  const json found = config(base_);
  EXPECT_EQ(found["bos_token"], "<s>");
  EXPECT_EQ(found["eos_token"], "</s>");
  EXPECT_EQ(found["pad_token"], "</s>");
  EXPECT_EQ(found["unk_token"], "\xC4\x80");
  EXPECT_EQ(found["chat_template"], "{{ messages }}");
  EXPECT_EQ(found["model_max_length"], 128);
  EXPECT_EQ(found["added_tokens_decoder"]["257"]["content"], "</s>");
  EXPECT_EQ(found["added_tokens_decoder"]["257"]["special"], true);
  const json added = tokenizer(base_)["added_tokens"];
  ASSERT_EQ(added.size(), 2U);
  EXPECT_EQ(added[0]["id"], 256);
  EXPECT_EQ(added[0]["content"], "<s>");
}

TEST_F(GgufTokenizerTest, AFileWithoutAnEndTokenGetsANote) {
  base_.remove("tokenizer.ggml.eos_token_id");
  EXPECT_THAT(read(base_).notes,
              ::testing::Contains(HasSubstr("eos_token_id is absent: no token ends")));
}

TEST_F(GgufTokenizerTest, ListsSeveralEndsOfATurn) {
  EXPECT_THAT(read(base_).ids, ElementsAre(Pair("bos_token_id", 256), Pair("eos_token_id", 257)));
  base_.set_integer("tokenizer.ggml.eot_token_id", 256);
  base_.set_integer("tokenizer.ggml.eom_token_id", 257);
  base_.set_integer("tokenizer.ggml.padding_token_id", 1);
  const GgufTokenizer found = read(base_);
  ASSERT_EQ(found.ids.size(), 3U);
  EXPECT_EQ(found.ids[1].second.dump(), "[257,256]");
  EXPECT_THAT(found.ids[2], Pair("pad_token_id", 1));
  base_.set_integer("tokenizer.ggml.padding_token_id", UINT32_MAX);  // none
  EXPECT_EQ(read(base_).ids.size(), 2U);
}

TEST_F(GgufTokenizerTest, KeepsNamedTemplates) {
  EXPECT_FALSE(config(base_).contains("chat_template"));
  base_.set_text("tokenizer.chat_template", "A");
  base_.set_text("tokenizer.chat_template.tool_use", "B");
  EXPECT_EQ(
      config(base_)["chat_template"],
      json::parse(R"([{"name":"default","template":"A"},{"name":"tool_use","template":"B"}])"));
}

TEST_F(GgufTokenizerTest, AddsTokensAroundTextsWhereTheFileOrItsKindSays) {
  EXPECT_EQ(tokenizer(base_)["post_processor"], nullptr);
  base_.set_bool("tokenizer.ggml.add_bos_token", true);
  EXPECT_THAT(parse_post_processor(tokenizer(base_)["post_processor"].dump()),
              ElementsAre(256, kTextPiece));
  base_.set_bool("tokenizer.ggml.add_eos_token", true);
  EXPECT_THAT(parse_post_processor(tokenizer(base_)["post_processor"].dump()),
              ElementsAre(256, kTextPiece, 257));
  EXPECT_EQ(config(base_)["add_eos_token"], true);
  base_.set_text("tokenizer.ggml.pre", "llama-bpe");
  base_.remove("tokenizer.ggml.add_bos_token");
  EXPECT_EQ(config(base_)["add_bos_token"], true);
  base_.set_bool("tokenizer.ggml.add_bos_token", false);
  EXPECT_EQ(config(base_)["add_bos_token"], false);
}

TEST_F(GgufTokenizerTest, EveryPreTokenizerCanBeReadBack) {
  EXPECT_THAT(gguf_pre_tokenizer_names(), testing::Contains("llama-bpe"));
  for (const std::string_view name : gguf_pre_tokenizer_names()) {
    const GgufPreTokenizer* row = gguf_pre_tokenizer(name);
    ASSERT_NE(row, nullptr);
    parse_pre_tokenizer(row->pre_tokenizer);
    parse_normalizer(row->normalizer);
    base_.set_text("tokenizer.ggml.pre", name);
    EXPECT_THAT(read(base_).notes, IsEmpty());
  }
  EXPECT_EQ(gguf_pre_tokenizer("none"), nullptr);
}

TEST_F(GgufTokenizerTest, SaysWhenItFollowsADefault) {
  base_.remove("tokenizer.ggml.pre");
  EXPECT_THAT(read(base_).notes, ElementsAre(HasSubstr("tokenizer.ggml.pre is absent")));
}

TEST_F(GgufTokenizerTest, DropsRowsThatPadTheVocabulary) {
  base_.set_strings("tokenizer.ggml.tokens", {"a", "b", "[PAD2]", "[PAD3]"});
  base_.set_integers("tokenizer.ggml.token_type", {1, 1, 5, 5});
  base_.set_integer("tokenizer.ggml.bos_token_id", 0);
  base_.set_integer("tokenizer.ggml.eos_token_id", 1);
  EXPECT_EQ(tokenizer(base_)["model"]["vocab"].dump(), R"({"a":0,"b":1})");
}

TEST_F(GgufTokenizerTest, RefusesWhatItDoesNotKnowByName) {
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_text("tokenizer.ggml.model", "bert"); }),
              HasSubstr("3 " + (folder_.path() / "f.gguf").string() +
                        ": tokenizer.ggml.model \"bert\" is not one"));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_text("tokenizer.ggml.pre", "deepseek-llm"); }),
              HasSubstr("tokenizer.ggml.pre \"deepseek-llm\" is not known"));
}

TEST_F(GgufTokenizerTest, RefusesTablesThatDoNotFit) {
  EXPECT_THAT(refusal([](TinyGguf& f) { f.remove("tokenizer.ggml.tokens"); }),
              HasSubstr("has no value tokenizer.ggml.tokens"));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.remove("tokenizer.ggml.merges"); }),
              HasSubstr("has no value tokenizer.ggml.merges"));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_integers("tokenizer.ggml.token_type", {1}); }),
              HasSubstr("tokenizer.ggml.token_type has 1 items for 258 tokens"));
  EXPECT_THAT(refusal([](TinyGguf& f) {
                f.set_integers("tokenizer.ggml.token_type", std::vector<int32_t>(258, 7));
              }),
              HasSubstr("tokenizer.ggml.token_type: item 0 is 7, expected 1 to 6"));
  EXPECT_THAT(refusal([](TinyGguf& f) {
                f.set_strings("tokenizer.ggml.tokens", std::vector<std::string>(301, "a"));
              }),
              HasSubstr("tokenizer.ggml.tokens has 301 tokens, token_embd.weight 300 rows"));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_integer("tokenizer.ggml.bos_token_id", 258); }),
              HasSubstr("tokenizer.ggml.bos_token_id is 258, expected 0 to 257"));
  const auto with_tokens = [&](std::vector<std::string> tokens) {
    return refusal([&](TinyGguf& f) {
      f.remove("tokenizer.ggml.token_type");
      f.set_strings("tokenizer.ggml.tokens", tokens);
    });
  };
  EXPECT_THAT(with_tokens({"a", "a"}), HasSubstr("tokenizer.ggml.tokens: \"a\" is there twice"));
  EXPECT_THAT(with_tokens({"a", "\xFF"}), HasSubstr("is not UTF-8"));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_strings("tokenizer.ggml.merges", {"\xFF"}); }),
              HasSubstr("tokenizer.ggml.merges: "));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_text("tokenizer.chat_template", "\xFF"); }),
              HasSubstr("tokenizer.chat_template"));
  EXPECT_THAT(refusal([](TinyGguf& f) {
                f.set_bool("tokenizer.ggml.add_bos_token", true);
                f.remove("tokenizer.ggml.bos_token_id");
              }),
              HasSubstr("says that bos is added to every text, and has no"));
}

class SentencePieceTest : public GgufTokenizerTest {
 protected:
  SentencePieceTest() {
    base_.set_text("tokenizer.ggml.model", "llama");
    base_.set_strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "<0x41>", "a", "b", "ab"});
    base_.set_integers("tokenizer.ggml.token_type", {2, 3, 3, 6, 1, 1, 1});
    base_.set_numbers("tokenizer.ggml.scores", {0, 0, 0, 0, -1, -2, -3});
    base_.set_integer("tokenizer.ggml.unknown_token_id", 0);
    base_.set_integer("tokenizer.ggml.bos_token_id", 1);
    base_.set_integer("tokenizer.ggml.eos_token_id", 2);
  }
};

TEST_F(SentencePieceTest, WritesTheTokenizerOfLlama2) {
  const json found = tokenizer(base_);
  EXPECT_EQ(found["model"]["byte_fallback"], true);
  EXPECT_EQ(found["model"]["fuse_unk"], true);
  EXPECT_EQ(found["model"]["unk_token"], "<unk>");
  EXPECT_EQ(found["model"]["merges"], json::parse(R"([["a","b"]])"));
  EXPECT_EQ(found["normalizer"]["normalizers"].size(), 2U);
  EXPECT_EQ(found["decoder"]["decoders"].size(), 4U);
  EXPECT_EQ(config(base_)["add_bos_token"], true);
  base_.set_bool("tokenizer.ggml.add_space_prefix", false);
  EXPECT_EQ(tokenizer(base_)["normalizer"]["normalizers"].size(), 1U);
  EXPECT_EQ(tokenizer(base_)["decoder"]["decoders"].size(), 3U);
}

TEST_F(SentencePieceTest, RefusesWhatItsScoresOrNormalisationCannotSay) {
  EXPECT_THAT(refusal([](TinyGguf& f) { f.remove("tokenizer.ggml.scores"); }),
              HasSubstr("tokenizer.ggml.scores has 0 items for 7 tokens"));
  EXPECT_THAT(refusal([](TinyGguf& f) {
                f.set_numbers("tokenizer.ggml.scores", std::vector<float>(7, std::nanf("")));
              }),
              HasSubstr("tokenizer.ggml.scores: item 0 is nan"));
  EXPECT_THAT(
      refusal([](TinyGguf& f) { f.set_integers("tokenizer.ggml.precompiled_charsmap", {1}); }),
      HasSubstr("3 "));
  EXPECT_THAT(
      refusal([](TinyGguf& f) { f.set_bool("tokenizer.ggml.remove_extra_whitespaces", true); }),
      HasSubstr("tokenizer.ggml.remove_extra_whitespaces is set"));
  EXPECT_THAT(refusal([](TinyGguf& f) {
                f.set_strings("tokenizer.ggml.tokens",
                              {"<unk>", "<s>", "</s>", "<0x41>", "a", "b", std::string(2000, 'x')});
              }),
              HasSubstr("token 6 has 2000 bytes, expected at most 1024"));
}

TEST(SentencePieceMerges, BestScoreFirstThenLongerParts) {
  const std::vector<std::string_view> pieces{"a",  "b",   "c",        "ab",
                                             "bc", "abc", "\xC3\xA9", "a\xC3\xA9"};
  const std::vector<double> scores{-9, -9, -9, -2, -1, -3, -9, -2};
  EXPECT_THAT(sentencepiece_merges(pieces, scores),
              ElementsAre(Pair("b", "c"), Pair("a", "b"), Pair("a", "\xC3\xA9"), Pair("ab", "c"),
                          Pair("a", "bc")));
}

}  // namespace
}  // namespace octet
