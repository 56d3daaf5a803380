#include "engine/engine.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <thread>

#include "base/error.h"
#include "testing/tiny_checkpoint.h"

namespace octet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

constexpr int32_t kVocab = 96;

class EngineTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TinyFolder>();
    tiny_model(small_tiny_model(tiny_fp8_dynamic(), kVocab, 128)).write(folder_->path());
  }
  static void TearDownTestSuite() { folder_.reset(); }

  EngineTest() {
    info_.threads = 2;
    device_ = make_cpu_device(info_, 2);
  }

  std::unique_ptr<Engine> engine(int64_t sequences, int64_t rows, int64_t context = 0) {
    PlanOptions options;
    options.policy.carrier = Carrier::F32;
    options.max_sequences = sequences;
    options.max_batch_tokens = rows;
    options.max_model_len = context;
    return std::make_unique<Engine>(prepare(folder_->path(), false, info_, std::move(options)),
                                    *device_);
  }

  static Request request(int32_t length, int32_t first, int64_t max_tokens = 12) {
    Request r;
    for (int32_t i = 0; i < length; ++i) r.prompt.push_back((first + 7 * i) % kVocab);
    r.max_tokens = max_tokens;
    return r;
  }

  // Events of every request until the engine is idle.
  static std::map<uint64_t, std::vector<Event>> run(Engine& engine) {
    std::map<uint64_t, std::vector<Event>> events;
    for (int steps = 0; !engine.idle(); ++steps) {
      if (steps > 2000) throw std::runtime_error("the engine does not come to an end");
      for (Event& event : engine.step()) events[event.request].push_back(std::move(event));
    }
    return events;
  }
  static Ids tokens(const std::vector<Event>& events) {
    Ids ids;
    for (const Event& event : events) {
      if (event.token) ids.push_back(*event.token);
    }
    return ids;
  }
  Ids alone(const Request& r) {
    const auto one = engine(1, 64);
    one->submit(r);
    return tokens(run(*one).at(1));
  }
  static std::string refusal(Engine& engine, Request r) {
    try {
      engine.submit(std::move(r));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::BadInput);
      return error.message();
    }
    return {};
  }

  static std::unique_ptr<TinyFolder> folder_;
  DeviceInfo info_ = probe_cpu();
  std::unique_ptr<Device> device_;
};

std::unique_ptr<TinyFolder> EngineTest::folder_;

TEST_F(EngineTest, SequencesTogetherGiveTheTokensTheyGiveAlone) {
  std::vector<Request> requests{request(3, 1), request(17, 5), request(40, 2), request(1, 30),
                                request(9, 60)};
  requests[1].sampling = {0.8F, 30, 0.9F, 0, 1.2F, 11};
  requests[3].sampling = {1.5F, 0, 1, 0.02F, 1, 12};
  for (const int64_t rows : {5, 7, 64}) {
    const auto many = engine(3, rows);
    for (const Request& r : requests) many->submit(r);
    const auto events = run(*many);
    ASSERT_EQ(events.size(), requests.size());
    for (size_t i = 0; i < requests.size(); ++i)
      EXPECT_EQ(tokens(events.at(i + 1)), alone(requests[i])) << rows << " rows, request " << i;
  }
}

TEST_F(EngineTest, ARequestThatComesLaterJoinsTheOthers) {
  const auto many = engine(2, 6);
  many->submit(request(20, 3));
  std::map<uint64_t, std::vector<Event>> events;
  for (int i = 0; i < 5; ++i) {
    for (Event& event : many->step()) events[event.request].push_back(std::move(event));
  }
  many->submit(request(8, 40));
  for (auto& [id, more] : run(*many)) {
    for (Event& event : more) events[id].push_back(std::move(event));
  }
  EXPECT_EQ(tokens(events.at(1)), alone(request(20, 3)));
  EXPECT_EQ(tokens(events.at(2)), alone(request(8, 40)));
}

TEST_F(EngineTest, CancelEndsOneRequestAndGivesItsMemoryBack) {
  const auto many = engine(2, 64, 64);
  const uint64_t first = many->submit(request(10, 3, 50));
  const uint64_t second = many->submit(request(8, 40));
  const uint64_t waiting = many->submit(request(8, 41));
  many->step();
  many->cancel(first);
  many->cancel(waiting);
  const auto events = run(*many);
  EXPECT_EQ(events.at(first).back().finish, FinishReason::Cancelled);
  EXPECT_FALSE(events.at(first).back().token);
  EXPECT_EQ(events.at(waiting).back().finish, FinishReason::Cancelled);
  EXPECT_EQ(events.at(second).back().finish, FinishReason::Length);
  // Two sequences of the whole context need every block.
  many->submit(request(60, 1, 4));
  many->submit(request(60, 2, 4));
  for (const auto& [id, list] : run(*many)) EXPECT_EQ(tokens(list).size(), 4U) << id;
}

TEST_F(EngineTest, CancellingWhatIsOverDoesNothing) {
  const auto one = engine(1, 64);
  const uint64_t id = one->submit(request(3, 1, 1));
  run(*one);
  one->cancel(id);
  one->cancel(99);
  EXPECT_TRUE(one->idle());
  EXPECT_TRUE(one->step().empty());
}

TEST_F(EngineTest, RefusesWhatCannotBeAnsweredWithBothNumbers) {
  const auto one = engine(1, 64, 16);
  EXPECT_THAT(refusal(*one, request(16, 1)), AllOf(HasSubstr("16 tokens"), HasSubstr("holds 16")));
  EXPECT_THAT(refusal(*one, request(0, 1)), HasSubstr("no tokens"));
  Request outside = request(2, 1);
  outside.prompt[1] = kVocab;
  EXPECT_THAT(refusal(*one, outside), AllOf(HasSubstr("token 96"), HasSubstr("96 entries")));
  outside.prompt[1] = -1;
  EXPECT_THAT(refusal(*one, outside), HasSubstr("token -1"));
  Request greedy = request(2, 1);
  greedy.top_logprobs = kVocab + 1;
  EXPECT_THAT(refusal(*one, greedy), AllOf(HasSubstr("97"), HasSubstr("96")));
  EXPECT_TRUE(one->idle());
}

TEST_F(EngineTest, AnAnswerEndsAtTheContextAtItsLimitOrAtAnEndToken) {
  const auto one = engine(1, 64, 16);
  one->submit(request(10, 1, 50));
  const auto whole = run(*one).at(1);
  EXPECT_EQ(tokens(whole).size(), 6U);
  EXPECT_EQ(whole.back().finish, FinishReason::Length);
  Request stops = request(10, 1, 50);
  const Ids ids = tokens(whole);
  stops.stop_ids = {ids[2]};
  one->submit(stops);
  const auto stopped = run(*one).at(2);
  EXPECT_EQ(stopped.back().finish, FinishReason::Stop);
  EXPECT_EQ(stopped.back().token, ids[2]);
  EXPECT_LE(tokens(stopped).size(), 3U);
}

TEST_F(EngineTest, NoTokensOnlyComputesThePrompt) {
  const auto one = engine(1, 4);
  one->submit(request(10, 1, 0));
  const auto events = run(*one).at(1);
  EXPECT_TRUE(tokens(events).empty());
  EXPECT_EQ(events.size(), 3U);  // chunks of 4, 4 and 2
  EXPECT_EQ(events.back().prompt_tokens_done, 10);
  EXPECT_EQ(events.back().finish, FinishReason::Length);
}

TEST_F(EngineTest, ScoresAreTheLogProbabilitiesOfTheNextTokens) {
  Request scored = request(30, 4);
  scored.score_prompt = true;
  for (const int64_t rows : {5, 64}) {
    const auto one = engine(1, rows);
    one->submit(scored);
    std::vector<float> scores;
    const auto done = run(*one);
    for (const Event& event : done.at(1))
      scores.insert(scores.end(), event.scores.begin(), event.scores.end());
    ASSERT_EQ(scores.size(), scored.prompt.size() - 1);
    for (const size_t length : {1U, 9U, 29U}) {
      Request prefix;
      prefix.prompt.assign(scored.prompt.begin(),
                           scored.prompt.begin() + static_cast<int64_t>(length));
      prefix.max_tokens = 1;
      prefix.top_logprobs = kVocab;
      const uint64_t id = one->submit(prefix);
      float expected = NAN;
      const auto answered = run(*one);
      for (const auto& [token, logprob] : answered.at(id).back().top) {
        if (token == scored.prompt[length]) expected = logprob;
      }
      // The same rows in steps of another size: float32 sums in another order.
      EXPECT_NEAR(scores[length - 1], expected, 1e-4) << rows << " rows, prefix " << length;
    }
  }
}

TEST_F(EngineTest, TwoEnginesRunOnTwoThreadsAtOnce) {
  Ids results[2];
  std::vector<std::thread> threads;
  for (Ids& result : results)
    threads.emplace_back([&] {
      const auto device = make_cpu_device(info_, 2);
      PlanOptions options;
      options.policy.carrier = Carrier::F32;
      Engine one(prepare(folder_->path(), false, info_, std::move(options)), *device);
      one.submit(request(9, 4));
      result = tokens(run(one).at(1));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0].size(), 12U);
}

}  // namespace
}  // namespace octet
