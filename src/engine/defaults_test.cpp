#include "engine/defaults.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kVocab = 100;

GenerationDefaults read(const json& generation, std::vector<int32_t> config_eos = {}) {
  return generation_defaults(&generation, config_eos, kVocab);
}

TEST(GenerationDefaults, AreGreedyWithoutAFile) {
  const std::vector<int32_t> eos{2};
  const GenerationDefaults defaults = generation_defaults(nullptr, eos, kVocab);
  EXPECT_EQ(defaults.sampling.temperature, 0);
  EXPECT_THAT(defaults.stop_ids, ElementsAre(2));
}

TEST(GenerationDefaults, AreGreedyUnlessSamplingIsOn) {
  EXPECT_EQ(read({{"temperature", 0.6}}).sampling.temperature, 0);
  EXPECT_EQ(read({{"do_sample", false}, {"temperature", 0.6}}).sampling.temperature, 0);
}

TEST(GenerationDefaults, WithoutSamplingOnlyThePenaltyCounts) {
  const auto s = read({{"temperature", 0.6}, {"top_k", 5}, {"repetition_penalty", 1.2}}).sampling;
  EXPECT_EQ(s.top_k, 0);
  EXPECT_FLOAT_EQ(s.repetition_penalty, 1.2F);
}

TEST(GenerationDefaults, BothWordsForAllTokensAreTaken) {
  EXPECT_EQ(read({{"do_sample", true}, {"top_k", -1}}).sampling.top_k, 0);
  EXPECT_EQ(read({{"do_sample", true}, {"top_k", 0}}).sampling.top_k, 0);
}

TEST(GenerationDefaults, EndTokensOutsideTheVocabularyAreNoted) {
  const GenerationDefaults defaults = read({{"eos_token_id", {99, 100}}}, {2, 4000});
  EXPECT_THAT(defaults.stop_ids, ElementsAre(2, 99));
  EXPECT_THAT(defaults.notes,
              ElementsAre("config.json: /eos_token_id: 4000 is outside the vocabulary of 100 and "
                          "ends no answer",
                          "generation_config.json: /eos_token_id: 100 is outside the vocabulary of "
                          "100 and ends no answer"));
  EXPECT_THAT(read({{"eos_token_id", 99}}, {2}).notes, IsEmpty());
}

TEST(GenerationDefaults, TheFileMayLimitTheAnswer) {
  EXPECT_EQ(read({{"max_new_tokens", 3}}).max_tokens, 3);
  EXPECT_EQ(read(json::object()).max_tokens, std::nullopt);
  EXPECT_THROW(read({{"max_new_tokens", 0}}), Error);
  EXPECT_THROW(read({{"max_new_tokens", "3"}}), Error);
}

TEST(GenerationDefaults, FieldsThatWouldChangeAnAnswerAndHaveNoEffectAreNoted) {
  EXPECT_THAT(read({{"num_beams", 4}, {"typical_p", 0.9}, {"bad_words_ids", {{5}}}}).notes,
              ElementsAre("generation_config.json: /num_beams has no effect",
                          "generation_config.json: /typical_p has no effect",
                          "generation_config.json: /bad_words_ids has no effect"));
  EXPECT_THAT(read({{"num_beams", 1},
                    {"typical_p", 1.0},
                    {"bad_words_ids", nullptr},
                    {"suppress_tokens", json::array()}})
                  .notes,
              IsEmpty());
}

TEST(GenerationDefaults, TakeWhatTheFileSaysAndElseWhatTransformersDoes) {
  const auto s = read({{"do_sample", true}, {"top_p", 0.8}, {"repetition_penalty", 1.05}}).sampling;
  EXPECT_EQ(s.temperature, 1);
  EXPECT_EQ(s.top_k, 50);
  EXPECT_FLOAT_EQ(s.top_p, 0.8F);
  EXPECT_FLOAT_EQ(s.repetition_penalty, 1.05F);
}

TEST(GenerationDefaults, EndTokensOfBothFilesCountOnce) {
  EXPECT_THAT(read({{"eos_token_id", {9, 2}}}, {2}).stop_ids, ElementsAre(2, 9));
  EXPECT_THAT(read({{"eos_token_id", 5}}).stop_ids, ElementsAre(5));
  EXPECT_THAT(read({{"eos_token_id", nullptr}}, {2}).stop_ids, ElementsAre(2));
}

TEST(GenerationDefaults, NonsenseIsRefusedByItsField) {
  const auto message = [](const json& generation) -> std::string {
    try {
      read(generation);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::BadInput);
      return error.message();
    }
    return {};
  };
  EXPECT_THAT(message({{"do_sample", true}, {"temperature", "hot"}}), HasSubstr("/temperature"));
  EXPECT_THAT(message({{"do_sample", true}, {"top_p", 1.5}}), HasSubstr("/top_p"));
  EXPECT_THAT(message({{"do_sample", true}, {"top_k", 2.5}}), HasSubstr("/top_k"));
  EXPECT_THAT(message({{"top_k", -2}}), HasSubstr("/top_k"));
  EXPECT_THAT(message({{"do_sample", "yes"}}), HasSubstr("/do_sample: expected true or false"));
  // Also where it would not be used.
  EXPECT_THAT(message({{"temperature", "hot"}}),
              HasSubstr("generation_config.json: /temperature: expected a number from 0 to 1000"));
  EXPECT_THAT(message({{"do_sample", false}, {"min_p", -1}}), HasSubstr("/min_p"));
  EXPECT_THAT(message({{"eos_token_id", uint64_t{1} << 63}}), HasSubstr("/eos_token_id"));
  EXPECT_THAT(message({{"repetition_penalty", 0}}), HasSubstr("/repetition_penalty"));
  EXPECT_THAT(message({{"eos_token_id", "two"}}), HasSubstr("/eos_token_id"));
  EXPECT_THAT(message({{"eos_token_id", {1, -4}}}), HasSubstr("-4"));
}

}  // namespace
}  // namespace octet
