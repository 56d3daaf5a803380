// Forward passes on a device whose memory faults when the host touches it.
#include "testing/fake_device.h"

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "tests/integration/rig.h"
#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

TEST(FakeDevice, ItsMemoryFaultsWhenTheHostReadsIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        const auto device = make_fake_device(here(), 1);
        const Buffer buffer = device->allocate(64);
        const volatile char* byte = buffer.as<char>();
        static_cast<void>(*byte);
      },
      "");
}

TEST(FakeDevice, CopiesAndOperationsMayTouchIt) {
  const auto device = make_fake_device(here(), 1);
  const auto stream = device->make_stream();
  const Buffer buffer = device->allocate(2 * sizeof(int));
  const int sent[] = {3, 4};
  int got[] = {0, 0};
  stream->upload(buffer.data(), sent, sizeof sent);
  stream->begin_op();
  buffer.as<int>()[0] += 10;
  stream->end_op();
  stream->download(got, buffer.data(), sizeof got);
  EXPECT_EQ(got[0], 13);
  EXPECT_EQ(got[1], 4);
}

TEST(FakeDevice, HoldsATiedTableOnce) {
  const TinyFolder folder;
  TinyModel model;
  model.tied = true;
  tiny_model(model).write(folder.path());
  const auto self = make_self_communicator();
  // Room for what the plan counts and for the pages that the fake device rounds up to, and not for
  // a second table.
  const PlanOptions options = exact_options();
  const Budget budget = prepare(folder.path(), false, here(), options).plan.budget;
  constexpr uint64_t kRounding = 160 << 10;
  static_assert(kRounding < 512 * 256 * 2);
  const auto fake = make_fake_device(here(), 1, budget.weights + kRounding);
  Prepared prepared = prepare(folder.path(), false, here(), options);
  const auto loaded = load(prepared.checkpoint, prepared.config, prepared.description,
                           prepared.records, prepared.plan, *fake);
  EXPECT_EQ(loaded->embedding, loaded->head.weight.codes);

  const auto cpu = make_cpu_device(here(), 1);
  const auto roomy = make_fake_device(here(), 1);
  Rig there(folder.path(), *roomy, *self, exact_options());
  Rig host(folder.path(), *cpu, *self, exact_options());
  const std::vector<int32_t> ids{17, 3, 250, 99};
  const auto rows = [&](Rig& rig) {
    return rows_by_id(rig.decoder->forward(scoring_batch(ids, rig.model->plan)), 512);
  };
  EXPECT_EQ(rows(there), rows(host));
}

// Everything an engine asks of a device: chunks of prompts among answers, draws, penalties,
// log-probabilities, scores.
std::vector<Event> run_everything(const std::filesystem::path& path, Device& device,
                                  Carrier carrier) {
  PlanOptions options;
  options.policy.carrier = carrier;
  options.max_sequences = 3;
  options.max_batch_tokens = 7;
  Engine engine(prepare(path, false, device.info(), std::move(options)), device);
  engine.watch_inputs();
  Request greedy;
  greedy.prompt = {3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23};
  greedy.max_tokens = 6;
  greedy.top_logprobs = 5;
  Request drawn = greedy;
  drawn.prompt = {4, 6};
  drawn.sampling = {0.9F, 20, 0.95F, 0.01F, 1.3F, 42};
  Request scored;
  scored.prompt = {1, 2, 3, 4, 5, 6, 7, 8};
  scored.score_prompt = true;
  for (const Request& request : {greedy, drawn, scored}) engine.submit(request);
  std::vector<Event> events;
  while (!engine.idle()) {
    for (Event& event : engine.step()) events.push_back(std::move(event));
  }
  Event inputs;
  inputs.scores = engine.input_amax();
  events.push_back(std::move(inputs));
  return events;
}

class EveryModel : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryModel, GivesTheSameBitsAsOnTheCpu) {
  for (const Carrier carrier : {Carrier::Auto, Carrier::F32, Carrier::BF16}) {
    const auto cpu = make_cpu_device(here(), 2);
    const auto fake = make_fake_device(here(), 2);
    const auto expected = run_everything(GetParam(), *cpu, carrier);
    const auto got = run_everything(GetParam(), *fake, carrier);
    ASSERT_EQ(got.size(), expected.size()) << name(carrier);
    ASSERT_GT(got.size(), 12U);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].request, expected[i].request);
      EXPECT_EQ(got[i].token, expected[i].token) << name(carrier) << ", event " << i;
      EXPECT_EQ(got[i].logprob, expected[i].logprob) << name(carrier) << ", event " << i;
      EXPECT_EQ(got[i].top, expected[i].top);
      EXPECT_EQ(got[i].scores, expected[i].scores) << name(carrier) << ", event " << i;
      EXPECT_EQ(got[i].finish, expected[i].finish) << got[i].failure;
      EXPECT_NE(got[i].finish, FinishReason::Failed) << got[i].failure;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    FakeDevice, EveryModel,
    ::testing::Values("testing/data/fp8/ct-dynamic", "testing/data/fp8/ct-static",
                      "testing/data/fp8/fp8-block-qwen3", "testing/data/fp8/ct-weight-only-block",
                      "testing/data/archs/qwen2-window", "testing/data/archs/llama-rope-yarn"),
    [](const auto& test) {
      std::string name = std::filesystem::path(test.param).filename().string();
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace octet
