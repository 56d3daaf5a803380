// `octet run`, `perplexity`, `kernels` and `probe` as processes, on a tiny model that has a
// tokenizer.
#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>

#include "tests/integration/process.h"
#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Ids = std::vector<int32_t>;
using Words = std::vector<std::string>;

constexpr int kVocab = 400;

class RunCommand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TinyFolder>();
    write_small_model(folder_->path() / "model");
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::string model() { return (folder_->path() / "model").string(); }

  static Ran run(const Words& words, int status = 0) {
    Words all{"run", model()};
    all.insert(all.end(), words.begin(), words.end());
    Ran ran = run_octet(all);
    EXPECT_EQ(ran.status, status) << describe_run(all, ran);
    return ran;
  }
  static json run_json(Words words) {
    words.emplace_back("--json");
    return json::parse(run(words).out);
  }
  static Ids tokens(const Words& words) { return run_json(words)["tokens"]; }

  static std::unique_ptr<TinyFolder> folder_;
};

std::unique_ptr<TinyFolder> RunCommand::folder_;

TEST_F(RunCommand, JsonHasTheFieldsThatScriptsRead) {
  const json data = run_json({"-p", "the water", "-n", "5"});
  EXPECT_THAT(data["prompt_tokens"].get<Ids>(), testing::Not(IsEmpty()));
  EXPECT_THAT(data["tokens"].get<Ids>(), SizeIs(5));
  EXPECT_TRUE(data["text"].is_string());
  EXPECT_EQ(data["finish_reason"], "length");
  EXPECT_FALSE(data.contains("logprobs"));
  for (const char* field :
       {"load_s", "prefill_s", "decode_s", "prompt_tokens_per_s", "tokens_per_s"}) {
    ASSERT_TRUE(data["timings"][field].is_number()) << field;
    EXPECT_GT(data["timings"][field].get<double>(), 0) << field;
  }
}

TEST_F(RunCommand, TextIsWhatTheJsonHolds) {
  const Words words{"-p", "the water", "-n", "8"};
  EXPECT_EQ(run(words).out, run_json(words)["text"].get<std::string>() + "\n");
}

TEST_F(RunCommand, LogprobsOfTheWholeVocabularyAreADistributionBestFirst) {
  const json data = run_json({"-p", "bread", "-n", "2", "--logprobs", std::to_string(kVocab)});
  ASSERT_EQ(data["logprobs"].size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    const json& entry = data["logprobs"][i];
    EXPECT_EQ(entry["token"], data["tokens"][i]);
    ASSERT_EQ(entry["top"].size(), static_cast<size_t>(kVocab));
    double sum = 0;
    double before = 0;
    std::vector<bool> seen(kVocab);
    for (const json& pair : entry["top"]) {
      const double logprob = pair[1];
      EXPECT_LE(logprob, before);
      before = logprob;
      sum += std::exp(logprob);
      seen[pair[0].get<size_t>()] = true;
    }
    EXPECT_NEAR(sum, 1, 1e-4);
    EXPECT_THAT(seen, Each(true));
    EXPECT_EQ(entry["top"][0][0], entry["token"]);  // greedy
    EXPECT_EQ(entry["top"][0][1], entry["logprob"]);
  }
}

TEST_F(RunCommand, LogprobsAreOfTheModelWhateverIsSampled) {
  const json greedy = run_json({"-p", "bread", "-n", "1", "--logprobs", "3"});
  const json drawn = run_json({"-p", "bread", "-n", "1", "--logprobs", "3", "--temperature", "3",
                               "--top-p", "0.9", "--seed", "5"});
  EXPECT_EQ(greedy["logprobs"][0]["top"], drawn["logprobs"][0]["top"]);
}

TEST_F(RunCommand, RefusesMoreLogprobsThanTheVocabularyHas) {
  const Ran ran = run({"-p", "bread", "--logprobs", std::to_string(kVocab + 1), "--json"}, 2);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("401"), HasSubstr("400")));
  EXPECT_THAT(run({"-p", "bread", "--logprobs", "1"}, 2).err, HasSubstr("--json"));
}

TEST_F(RunCommand, NoTokensOnlyTokenises) {
  const json data = run_json({"-p", "the water", "-n", "0"});
  EXPECT_EQ(data["tokens"], json::array());
  EXPECT_EQ(data["text"], "");
  EXPECT_EQ(data["prompt_tokens"], run_json({"-p", "the water", "-n", "1"})["prompt_tokens"]);
}

TEST_F(RunCommand, TakesRawIds) {
  const json from_text = run_json({"-p", "the water", "-n", "6"});
  std::string ids;
  for (const int32_t id : from_text["prompt_tokens"].get<Ids>())
    ids += (ids.empty() ? "" : ",") + std::to_string(id);
  const json from_ids = run_json({"--prompt-ids", ids, "-n", "6"});
  EXPECT_EQ(from_ids["prompt_tokens"], from_text["prompt_tokens"]);
  EXPECT_EQ(from_ids["tokens"], from_text["tokens"]);
}

TEST_F(RunCommand, AModelWithoutATokenizerTakesIdsAndAnswersWithIds) {
  const TinyFolder folder;
  const std::filesystem::path bare = folder.path() / "bare";
  std::filesystem::copy(model(), bare, std::filesystem::copy_options::recursive);
  const Words words{"--prompt-ids", "5,6,7", "-n", "4"};
  std::string expected;
  for (const int32_t id : tokens(words))
    expected += (expected.empty() ? "" : ",") + std::to_string(id);
  std::filesystem::remove(bare / "tokenizer.json");
  const auto run_bare = [&](Words more, int status) {
    more.insert(more.begin(), {"run", bare.string()});
    Ran ran = run_octet(more);
    EXPECT_EQ(ran.status, status) << describe_run(more, ran);
    return ran;
  };
  const Ran ran = run_bare(words, 0);
  EXPECT_EQ(ran.out, expected + "\n");
  EXPECT_THAT(ran.err, HasSubstr("has no tokenizer.json: the answer is token ids"));
  EXPECT_EQ(run_bare({"--prompt-ids", "5,6", "-n", "0"}, 0).out, "      5\n      6\n");
  EXPECT_THAT(run_bare({"--prompt-ids", "5", "--stop", "x"}, 2).err,
              AllOf(HasSubstr("--stop \"x\""), HasSubstr("no tokenizer.json")));
  EXPECT_THAT(run_bare({"-p", "x"}, 2).err, HasSubstr("has no tokenizer.json"));
}

TEST_F(RunCommand, RefusesIdsOutsideTheVocabulary) {
  EXPECT_THAT(run({"--prompt-ids", "1,400"}, 2).err, AllOf(HasSubstr("400"), HasSubstr("vocab")));
  EXPECT_THAT(run({"--prompt-ids=-1"}, 2).err, HasSubstr("-1"));
  EXPECT_THAT(run({"--prompt-ids", "1,x"}, 2).err, HasSubstr("x"));
  EXPECT_THAT(run({"--prompt-ids", "1 2"}, 2).err, HasSubstr("numbers between commas, got '1 2'"));
  EXPECT_THAT(run({}, 2).err, HasSubstr("--prompt"));
  EXPECT_THAT(run({"-p", "a", "--prompt-ids", "1"}, 2).err, HasSubstr("both"));
  EXPECT_THAT(run({"-p", ""}, 2).err, HasSubstr("no tokens"));
}

TEST_F(RunCommand, StopsBeforeAStopText) {
  const std::string whole = run_json({"-p", "bread", "-n", "24"})["text"];
  ASSERT_GT(whole.size(), 8U);
  // A text that occurs in the answer, cut at a character.
  size_t begin = whole.size() / 2;
  while ((static_cast<unsigned char>(whole[begin]) & 0xC0U) == 0x80U) --begin;
  size_t end = begin + 3;
  while (end < whole.size() && (static_cast<unsigned char>(whole[end]) & 0xC0U) == 0x80U) ++end;
  const std::string stop = whole.substr(begin, end - begin);
  const json cut = run_json({"-p", "bread", "-n", "24", "--stop", stop});
  EXPECT_EQ(cut["finish_reason"], "stop");
  EXPECT_EQ(cut["text"], whole.substr(0, whole.find(stop)));
  EXPECT_LT(cut["tokens"].size(), 24U);
}

TEST_F(RunCommand, TheEndTokensOfTheGenerationConfigEndTheAnswer) {
  const Ids greedy = tokens({"-p", "bread", "-n", "8"});
  const TinyFolder other;
  write_small_model(other.path() / "model");
  const auto config = other.path() / "model" / "generation_config.json";
  write_bytes(config, json{{"eos_token_id", {7, greedy[3]}}}.dump());
  const Words words{"run", (other.path() / "model").string(), "-p", "bread", "-n", "8", "--json"};
  const Ran ran = run_octet(words);
  const json data = json::parse(ran.out);
  EXPECT_EQ(data["finish_reason"], "stop");
  EXPECT_EQ(data["tokens"].get<Ids>().back(), greedy[3]);
  EXPECT_LE(data["tokens"].size(), 4U);
}

TEST_F(RunCommand, TheGenerationConfigGivesDefaultsThatFlagsReplace) {
  const TinyFolder other;
  write_small_model(other.path() / "model");
  write_bytes(other.path() / "model" / "generation_config.json",
              R"({"do_sample": true, "temperature": 5.0, "top_k": 0})");
  const auto answer = [&](const Words& more) {
    Words words{"run", (other.path() / "model").string(), "-p", "bread", "-n", "12", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return json::parse(run_octet(words).out)["tokens"].get<Ids>();
  };
  const Ids greedy = tokens({"-p", "bread", "-n", "12"});
  EXPECT_NE(answer({"--seed", "1"}), greedy);
  EXPECT_EQ(answer({"--temperature", "0"}), greedy);
  EXPECT_EQ(answer({"--top-k", "1", "--seed", "1"}), greedy);
}

TEST_F(RunCommand, TheGenerationConfigLimitsTheAnswerUnlessTheFlagDoes) {
  const TinyFolder other;
  write_small_model(other.path() / "model");
  write_bytes(other.path() / "model" / "generation_config.json", R"({"max_new_tokens": 3})");
  const auto length = [&](const Words& more) {
    Words words{"run", (other.path() / "model").string(), "-p", "bread", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return json::parse(run_octet(words).out)["tokens"].size();
  };
  EXPECT_EQ(length({}), 3U);
  EXPECT_EQ(length({"-n", "5"}), 5U);
}

TEST_F(RunCommand, EndTokensOutsideTheVocabularyAreNotedAndTheAnswerComes) {
  const TinyFolder other;
  write_small_model(other.path() / "model");
  write_bytes(other.path() / "model" / "generation_config.json", R"({"eos_token_id": [7, 4000]})");
  const Words words{"run", (other.path() / "model").string(), "-p", "bread", "-n", "2"};
  const Ran ran = run_octet(words);
  EXPECT_EQ(ran.status, 0) << describe_run(words, ran);
  EXPECT_EQ(ran.err,
            "octet: note: generation_config.json: /eos_token_id: 4000 is outside the vocabulary of "
            "400 and ends no answer\n");
}

TEST_F(RunCommand, TheSeedDecidesTheAnswer) {
  const auto drawn = [](const char* seed) {
    return tokens({"-p", "bread", "-n", "12", "--temperature", "2", "--seed", seed});
  };
  EXPECT_EQ(drawn("1"), drawn("1"));
  EXPECT_NE(drawn("1"), drawn("2"));
}

TEST_F(RunCommand, EveryWayToBeGreedyIsArgMax) {
  const json data = run_json({"-p", "bread", "-n", "6", "--temperature", "0", "--logprobs", "1"});
  for (const json& entry : data["logprobs"]) EXPECT_EQ(entry["token"], entry["top"][0][0]);
  const Ids greedy = data["tokens"];
  for (const Words& flags : {Words{"--top-k", "1"}, Words{"--top-p", "0"}, Words{"--min-p", "1"}}) {
    Words words{"-p", "bread", "-n", "6", "--temperature", "1", "--seed", "3"};
    words.insert(words.end(), flags.begin(), flags.end());
    EXPECT_EQ(tokens(words), greedy) << flags[0];
  }
}

TEST_F(RunCommand, ARepetitionPenaltyForbidsWhatWasSaid) {
  const Ids said = tokens({"-p", "bread", "-n", "40", "--repetition-penalty", "1000"});
  const std::set<int32_t> distinct(said.begin(), said.end());
  EXPECT_EQ(distinct.size(), said.size());
}

TEST_F(RunCommand, ThreadsAndStepSizesDoNotChangeTheAnswer) {
  const std::string prompt = "The water of the lake is cold and clear in the morning.";
  const Ids one = tokens({"-p", prompt, "-n", "16", "--threads", "1"});
  EXPECT_EQ(tokens({"-p", prompt, "-n", "16", "--threads", "2"}), one);
  EXPECT_EQ(
      tokens({"-p", prompt, "-n", "16", "--max-num-batched-tokens", "5", "--dtype", "float32"}),
      tokens({"-p", prompt, "-n", "16", "--dtype", "float32"}));
}

TEST_F(RunCommand, ChatPutsThePromptIntoTheTemplate) {
  const json chat = run_json({"--chat", "-p", "bread", "-n", "0"});
  const json text =
      run_json({"-p", "<|im_start|>user\nbread<|im_end|>\n<|im_start|>assistant\n", "-n", "0"});
  EXPECT_EQ(chat["prompt_tokens"], text["prompt_tokens"]);
  const json with_system = run_json({"--chat", "--system", "be brief", "-p", "bread", "-n", "0"});
  EXPECT_GT(with_system["prompt_tokens"].size(), chat["prompt_tokens"].size());
}

TEST_F(RunCommand, TheContextLimitEndsAnAnswerAndRefusesAPrompt) {
  const json data = run_json({"--prompt-ids", "5,6,7", "-n", "100", "--max-model-len", "10"});
  EXPECT_EQ(data["tokens"].size(), 7U);
  EXPECT_EQ(data["finish_reason"], "length");
  const Ran ran = run({"--prompt-ids", "5,6,7,8", "--max-model-len", "4"}, 2);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("4 tokens"), HasSubstr("--max-model-len")));
}

TEST_F(RunCommand, APromptOverWhatTheModelWasMadeForIsNotHelpedByAFlag) {
  std::string prompt = "the water";
  while (prompt.size() < 20'000) prompt += " the water and the bread";
  EXPECT_THAT(run({"-p", prompt}, 2).err,
              AllOf(HasSubstr("the model was made for"), Not(HasSubstr("max-model-len"))));
  EXPECT_THAT(run({"-p", prompt, "--max-model-len", "8"}, 2).err,
              HasSubstr("raise --max-model-len"));
}

TEST_F(RunCommand, FlagsAreReadAsPeopleWriteThem) {
  EXPECT_EQ(run_json({"-p", "-x", "-n", "0"})["prompt_tokens"],
            run_json({"--prompt=-x", "-n", "0"})["prompt_tokens"]);
  EXPECT_EQ(tokens({"-p", "bread", "-n", "5", "--max_model_len", "8k", "--temp", "0"}),
            tokens({"--prompt", "bread", "--max-tokens=5", "--max-model-len", "8000"}));
  EXPECT_THAT(run({"-p", "bread", "-tp", "2"}, 3).err, HasSubstr("2"));
  EXPECT_THAT(run({"-p", "bread", "-tp=2"}, 3).err, HasSubstr("2"));
  EXPECT_THAT(run({"-p", "bread", "--nonsense"}, 2).err, HasSubstr("--nonsense"));
  EXPECT_THAT(run({"-p", "bread", "-n", "many"}, 2).err, HasSubstr("many"));
}

TEST_F(RunCommand, APromptThatIsNotUtf8IsNamedByItsByte) {
  EXPECT_THAT(run({"-p", "bread \xFF water"}, 2).err, AllOf(HasSubstr("UTF-8"), HasSubstr("6")));
}

TEST_F(RunCommand, AStopTextThatIsNotUtf8IsRefused) {
  const Ran ran = run({"-p", "bread", "--stop", "ok", "--stop", "a\xFF"}, 2);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("--stop"), HasSubstr("UTF-8"), HasSubstr("byte 1 of 2")));
  const Ran chat = run_octet({"chat", model(), "--stop", "\xC3"}, {.input = "bread\n"});
  EXPECT_EQ(chat.status, 2) << chat.err;
}

TEST_F(RunCommand, TakesEverySeedOf64Bits) {
  const Words drawn{"-p", "bread", "-n", "12", "--temperature", "2", "--seed"};
  const auto with = [&](const char* seed) {
    Words words = drawn;
    words.emplace_back(seed);
    return words;
  };
  EXPECT_EQ(tokens(with("18446744073709551615")), tokens(with("18446744073709551615")));
  EXPECT_NE(tokens(with("18446744073709551615")), tokens(with("9223372036854775807")));
  EXPECT_THAT(run(with("18446744073709551616"), 2).err,
              HasSubstr("from 0 to 18446744073709551615"));
}

TEST_F(RunCommand, EverySignalToEndKeepsTheAnswerSoFar) {
  const std::string out = (folder_->path() / "answer").string();
  const auto begun = [&] {
    std::error_code error;
    return std::filesystem::file_size(out, error) > 50 && !error;
  };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    std::filesystem::remove(out);
    const Words words{"run", model(), "-p", "bread", "-n", "3000"};
    const Ran ran = run_octet(words, {.output_path = out, .signal = signal, .when = begun});
    EXPECT_EQ(ran.status, 130) << signal << describe_run(words, ran);
    EXPECT_TRUE(read_bytes(out).ends_with('\n')) << signal;
  }
}

// Runs a command that takes seconds and sends it a signal in the midst of it. A signal that came
// before the program had handlers ended it by itself: then it is sent later.
Ran stopped(const Words& words, int signal) {
  Ran ran;
  for (auto delay = std::chrono::milliseconds(40); delay < std::chrono::seconds(3); delay *= 2) {
    const auto start = std::chrono::steady_clock::now();
    ran = run_octet(words, {.signal = signal, .when = [=] {
                              std::this_thread::sleep_for(std::chrono::milliseconds(1));
                              return std::chrono::steady_clock::now() - start >= delay;
                            }});
    if (ran.signal == 0) break;
  }
  return ran;
}

TEST_F(RunCommand, EverySignalToEndIsCancelledInJson) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const Words words{"run", model(), "-p", "bread", "-n", "3000", "--json"};
    const Ran ran = stopped(words, signal);
    ASSERT_EQ(ran.status, 130) << signal << describe_run(words, ran);
    const json data = json::parse(ran.out);
    EXPECT_EQ(data["finish_reason"], "cancelled") << signal;
    EXPECT_LT(data["tokens"].size(), 3000U);
  }
}

TEST_F(RunCommand, EverySignalToEndStopsPerplexityWithAMessage) {
  const TinyFolder texts;
  const std::string file = (texts.path() / "long.txt").string();
  std::string text;
  while (text.size() < 2000000) text += "the water of the lake is cold and clear in the morning. ";
  write_bytes(file, text);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const Words words{"perplexity", model(), "--file", file};
    const Ran ran = stopped(words, signal);
    EXPECT_EQ(ran.status, 130) << signal << describe_run(words, ran);
    EXPECT_EQ(ran.err, "octet: interrupted; the text was not read to its end\n");
    EXPECT_EQ(ran.out, "");
  }
}

TEST_F(RunCommand, AFullDiskUnderTheOutputIsExit4) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full on this system";
  const Words words{"run", model(), "-p", "bread", "-n", "4"};
  const Ran ran = run_octet(words, {.output_path = "/dev/full"});
  EXPECT_EQ(ran.status, 4) << describe_run(words, ran);
  EXPECT_THAT(ran.err, HasSubstr("output"));
}

TEST_F(RunCommand, PerplexityIsTheExponentialOfTheMeanNll) {
  const Words words{"perplexity", model(), "--file", "testing/data/text/bread.txt", "--json"};
  const Ran ran = run_octet(words);
  ASSERT_EQ(ran.status, 0) << describe_run(words, ran);
  const json data = json::parse(ran.out);
  EXPECT_GT(data["tokens"].get<int>(), 10);
  EXPECT_NEAR(data["perplexity"], std::exp(data["nll"].get<double>()),
              1e-9 * data["perplexity"].get<double>());
  EXPECT_GT(data["nll"].get<double>(), 0);
  const Ran text = run_octet({"perplexity", model(), "--file", "testing/data/text/bread.txt"});
  EXPECT_THAT(text.out, HasSubstr("perplexity"));
}

TEST_F(RunCommand, PerplexityNeedsATextOfTwoTokens) {
  const TinyFolder texts;
  const std::string file = (texts.path() / "one.txt").string();
  write_bytes(file, "");
  EXPECT_EQ(run_octet({"perplexity", model(), "--file", file}).status, 2);
  EXPECT_EQ(run_octet({"perplexity", model()}).status, 2);
  const Ran missing = run_octet({"perplexity", model(), "--file", "/no/such/text"});
  EXPECT_EQ(missing.status, 2);
  EXPECT_THAT(missing.err, HasSubstr("/no/such/text"));
}

}  // namespace
}  // namespace octet
