#include "text/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace octet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Tokens a, b, c and random joins of them, as a trainer could have made.
using Pairs = std::vector<std::pair<std::string, std::string>>;

struct Model {
  Vocab vocab;
  Pairs pairs;
  std::optional<Bpe> bpe;

  explicit Model(Pairs merges) : pairs(std::move(merges)) {
    int32_t id = 0;
    for (const char* letter : {"a", "b", "c"}) vocab.add(letter, id++);
    for (const auto& [left, right] : pairs) {
      vocab.index();
      if (!vocab.find(left + right)) vocab.add(left + right, id++);
    }
    vocab.index();
    bpe.emplace(vocab, 0);
    for (const auto& [left, right] : pairs)
      bpe->merge(vocab, std::vector<Bpe::TokenPair>{{left, right}});
  }

  std::vector<std::string> encode(std::string_view word) const {
    std::vector<int32_t> ids;
    Bpe::Scratch scratch;
    bpe->encode(vocab, word, ids, scratch);
    std::vector<std::string> tokens;
    for (const int32_t id : ids) tokens.emplace_back(vocab.bytes(id));
    return tokens;
  }

  // The definition: join the leftmost of the pairs listed first (last mention counts) until there
  // is none.
  std::vector<std::string> by_definition(std::string_view word) const {
    std::vector<std::string> tokens;
    for (const char byte : word) tokens.emplace_back(1, byte);
    while (true) {
      size_t best_rank = pairs.size(), best = 0;
      for (size_t i = 0; i + 1 < tokens.size(); ++i) {
        for (size_t rank = pairs.size(); rank-- > 0;) {
          if (pairs[rank] != std::pair(tokens[i], tokens[i + 1])) continue;
          if (rank < best_rank) best_rank = rank, best = i;
          break;
        }
      }
      if (best_rank == pairs.size()) return tokens;
      tokens[best] += tokens[best + 1];
      tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
  }
};

TEST(Bpe, JoinsTheFirstListedPairFirstAndTheLeftmostOfEquals) {
  const Model model(Pairs{{"a", "a"}, {"aa", "b"}, {"b", "c"}});
  EXPECT_THAT(model.encode("aaab"), ElementsAre("aa", "a", "b"));
  EXPECT_THAT(model.encode("aab"), ElementsAre("aab"));
  EXPECT_THAT(model.encode("aabc"), ElementsAre("aab", "c"));
  EXPECT_THAT(model.encode("abc"), ElementsAre("a", "bc"));
  EXPECT_THAT(model.encode(""), ElementsAre());
}

TEST(Bpe, CountsAPairWhereItIsListedLast) {
  const Model model(Pairs{{"a", "b"}, {"b", "c"}, {"a", "b"}});
  EXPECT_THAT(model.encode("abc"), ElementsAre("a", "bc"));
}

TEST(Bpe, AgreesWithTheDefinitionOnShortAndLongWords) {
  std::mt19937 random(5);
  for (int round = 0; round < 30; ++round) {
    std::vector<std::string> tokens = {"a", "b", "c"};
    std::vector<std::pair<std::string, std::string>> pairs;
    for (int i = 0; i < 25; ++i) {
      const std::string left = tokens[random() % tokens.size()],
                        right = tokens[random() % tokens.size()];
      pairs.emplace_back(left, right);
      tokens.push_back(left + right);
    }
    const Model model(pairs);
    for (const size_t length : {2U, 3U, 7U, 20U, 47U, 48U, 49U, 60U, 200U}) {
      std::string word;
      for (size_t i = 0; i < length; ++i)
        word +=
            "aab"
            "bc"[random() % 5];
      ASSERT_EQ(model.encode(word), model.by_definition(word)) << word;
    }
  }
}

TEST(Bpe, TakesAMillionBytesInOneWord) {
  const Model model(Pairs{{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}, {"b", "a"}});
  EXPECT_EQ(model.encode(std::string(1'000'000, 'a')).size(), 125'000U);
}

TEST(Bpe, GivesUnknownBytesTheUnknownTokenFusedOrNotOrDropsThem) {
  Model model(Pairs{{"a", "b"}});
  EXPECT_EQ(model.bpe->first_missing_byte(), 0U);
  EXPECT_THAT(model.encode("a??b"),
              ElementsAre("ab"));  // as the reference: what is dropped does not part its neighbours
  model.bpe->set_options({.unknown_id = 2});
  EXPECT_THAT(model.encode("a??b"), ElementsAre("a", "c", "c", "b"));
  model.bpe->set_options({.fuse_unknown = true, .unknown_id = 2});
  EXPECT_THAT(model.encode("a??b?"), ElementsAre("a", "c", "b", "c"));
}

TEST(Bpe, TakesAWholeWordBeforeMergesWhereAsked) {
  Model model(Pairs{{"a", "b"}, {"ab", "c"}});
  model.vocab.add("cab", 9);
  EXPECT_THAT(model.encode("cab"), ElementsAre("c", "ab"));
  model.bpe->set_options({.ignore_merges = true});
  EXPECT_THAT(model.encode("cab"), ElementsAre("cab"));
  EXPECT_THAT(model.encode("cabc"), ElementsAre("c", "abc"));
}

TEST(Bpe, RefusesMergesOfUnknownTokens) {
  Vocab vocab;
  for (int32_t id = 0; const char* text : {"a", "b", "ab"}) vocab.add(text, id++);
  vocab.index();
  const auto message = [&](std::string_view left, std::string_view right) -> std::string {
    Bpe bpe(vocab, 4);
    try {
      bpe.merge(vocab, std::vector<Bpe::TokenPair>{{"a", "b"}, {left, right}});
    } catch (const Error& error) {
      return error.message();
    }
    return "accepted";
  };
  EXPECT_THAT(message("x", "b"),
              HasSubstr("merge 1 (\"x\" with \"b\") names \"x\", which is not in the vocabulary"));
  EXPECT_THAT(message("a", "y"), HasSubstr("names \"y\""));
  EXPECT_THAT(message("b", "a"), HasSubstr("names \"ba\""));
}

}  // namespace
}  // namespace octet
