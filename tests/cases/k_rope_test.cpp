// Section K of the cases: rotations, windows, shapes of heads and ranks.
#include <gmock/gmock.h>

#include <cmath>

#include "engine/engine.h"
#include "model/rope_angles.h"
#include "tests/cases/case_model.h"
#include "tests/integration/process.h"
#include "tests/integration/rank_rig.h"
#include "tests/integration/rig.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

json config_of(const TinyModel& model = m0()) {
  return tiny_model(model).config();
}

TEST(CaseK01, Llama3ScalingKeepsBlendsAndDivides) {
  json config = config_of();
  config["rope_theta"] = 500000.0;
  for (const char* key : {"rope_type", "type"}) {
    config["rope_scaling"] = {{key, "llama3"},
                              {"factor", 32.0},
                              {"low_freq_factor", 1.0},
                              {"high_freq_factor", 4.0},
                              {"original_max_position_embeddings", 8192}};
    const RopeConfig rope = read_config(config).rope;
    RopeConfig plain = rope;
    plain.kind = RopeKind::Default;
    const std::vector<float> scaled = rope_frequencies(rope, 64, 0);
    const std::vector<float> before = rope_frequencies(plain, 64, 0);
    for (size_t i = 0; i < 32; ++i) {
      const float ratio = before[i] / scaled[i];
      if (i <= 14) {
        EXPECT_EQ(ratio, 1) << i;
      } else if (i >= 18) {
        EXPECT_FLOAT_EQ(ratio, 32) << i;
      } else {
        EXPECT_TRUE(ratio > 1 && ratio < 32) << i;
      }
    }
  }
  // Logits are those of the reference with these frequencies, near and far.
  const TinyFolder folder;
  TinyModel model = m0();
  model.layers = 1;
  TinyCheckpoint checkpoint = tiny_model(model);
  checkpoint.config()["rope_theta"] = 500000.0;
  checkpoint.config()["rope_scaling"] = config["rope_scaling"];
  checkpoint.write(folder.path());
  ReferenceDetails details;
  for (const float f : rope_frequencies(read_config(config).rope, 64, 0))
    details.frequencies.push_back(f);
  expect_reference(folder.path(), checkpoint, model, details, 100);
}

TEST(CaseK03, YarnTakesAnExplicitAttentionFactor) {
  json config = config_of();
  config["rope_scaling"] = {
      {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 64}};
  EXPECT_NEAR(read_config(config).rope.attention_factor, 1.13863, 1e-5);
  config["rope_scaling"]["attention_factor"] = 1.0;
  EXPECT_EQ(read_config(config).rope.attention_factor, 1.0);
}

// Log-probabilities of the tokens that a greedy request chooses.
std::vector<std::pair<int32_t, float>> greedy(const std::filesystem::path& dir,
                                              std::vector<int32_t> prompt, int64_t count) {
  Prepared prepared = planned(dir);
  const auto device = make_cpu_device(prepared.plan.device, 2);
  Engine engine(std::move(prepared), *device);
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = count;
  engine.submit(std::move(request));
  std::vector<std::pair<int32_t, float>> tokens;
  while (!engine.idle()) {
    for (const Event& event : engine.step()) {
      if (event.token) tokens.emplace_back(*event.token, event.logprob);
    }
  }
  return tokens;
}

// A Phi-3 model with LongRoPE whose original length is 64.
void write_longrope(const std::filesystem::path& dir, const json& short_factor,
                    const json& long_factor) {
  TinyModel model = m0();
  TinyCheckpoint checkpoint = tiny_model(model);
  store_as_phi3(checkpoint, model.layers);
  json& config = checkpoint.config();
  config["original_max_position_embeddings"] = 64;
  config["eos_token_id"] = nullptr;
  config["rope_scaling"] = {
      {"type", "longrope"}, {"short_factor", short_factor}, {"long_factor", long_factor}};
  checkpoint.write(dir);
}

TEST(CaseK04, LongRopeUsesOneTableForAWholeSequenceByItsFinalLength) {
  json ones;
  json stretched;
  for (int i = 0; i < 32; ++i) {
    ones.push_back(1.0);
    stretched.push_back(i + 1.0);
  }
  const TinyFolder folder;
  write_longrope(folder.path() / "both", ones, stretched);
  write_longrope(folder.path() / "short", ones, ones);
  write_longrope(folder.path() / "long", stretched, stretched);
  struct Run {
    size_t prompt;
    int64_t answer;
    const char* table;
  };
  for (const Run& run :
       {Run{20, 4, "short"}, Run{50, 4, "short"}, Run{65, 4, "long"}, Run{100, 4, "long"},
        Run{60, 20, "long"}, Run{61, 4, "short"}, Run{62, 4, "long"}}) {
    const std::vector<int32_t> prompt = some_ids(run.prompt);
    EXPECT_EQ(greedy(folder.path() / "both", prompt, run.answer),
              greedy(folder.path() / run.table, prompt, run.answer))
        << run.prompt << " + " << run.answer;
    EXPECT_NE(greedy(folder.path() / "short", prompt, run.answer),
              greedy(folder.path() / "long", prompt, run.answer));
  }
}

TEST(CaseK05, ThetaIsReadFromBothPlaces) {
  json a = config_of();
  a["rope_theta"] = 500000.0;
  json b = config_of();
  b.erase("rope_theta");
  b["rope_parameters"] = {{"rope_theta", 500000.0}, {"rope_type", "default"}};
  EXPECT_EQ(read_config(a).rope.theta, 500000);
  EXPECT_EQ(read_config(b).rope.theta, 500000);
  json c = config_of();
  c["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  EXPECT_EQ(read_config(c).rope.kind, RopeKind::Linear);
  json d = config_of();
  d["rope_parameters"] = {{"full_attention", {{"rope_theta", 1e6}, {"rope_type", "default"}}},
                          {"sliding_attention", {{"rope_theta", 1e4}, {"rope_type", "default"}}}};
  EXPECT_THAT(refusal_of([&] { read_config(d); }, Code::CannotRun),
              AllOf(HasSubstr("rope_parameters"), HasSubstr("layer type")));
  json e = config_of();
  e["rope_scaling"] = {{"rope_type", "spiral"}, {"factor", 2.0}};
  EXPECT_THAT(refusal_of([&] { read_config(e); }, Code::CannotRun), HasSubstr("spiral"));
}

json sliding(bool use) {
  TinyModel model = m0();
  model.layers = 4;
  model.architecture = "Qwen2ForCausalLM";
  model.model_type = "qwen2";
  json config = config_of(model);
  config["sliding_window"] = 8;
  config["max_window_layers"] = 2;
  config["use_sliding_window"] = use;
  return config;
}

TEST(CaseK06, TheWindowIsOnTheLayersThatTheConfigMeans) {
  EXPECT_EQ(read_config(sliding(true)).windows, (std::vector<int64_t>{0, 0, 8, 8}));
  EXPECT_EQ(read_config(sliding(false)).windows, (std::vector<int64_t>{0, 0, 0, 0}));
  json listed = sliding(true);
  listed["layer_types"] = {"sliding_attention", "full_attention", "full_attention",
                           "sliding_attention"};
  EXPECT_EQ(read_config(listed).windows, (std::vector<int64_t>{8, 0, 0, 8}));
}

TEST(CaseK07, ARowSeesTheLastEightTokensAndNoMore) {
  TinyModel model = m0();
  model.architecture = "MistralForCausalLM";
  model.model_type = "mistral";
  const TinyFolder folder;
  TinyCheckpoint checkpoint = tiny_model(model);
  checkpoint.config()["sliding_window"] = 8;
  checkpoint.write(folder.path());
  ReferenceDetails details;
  details.windows = {8, 8};
  for (const size_t tokens : {7, 8, 9, 40})
    expect_reference(folder.path(), checkpoint, model, details, tokens);
  // The same in chunks of any size.
  const std::vector<int32_t> ids = some_ids(40);
  const auto whole = our_logprobs(folder.path(), ids);
  for (const int64_t chunk : {1, 7, 16})
    EXPECT_LT(largest_difference(our_logprobs(folder.path(), ids, {}, chunk), whole), 1e-4)
        << chunk;
}

TEST(CaseK08, TheHeadSizeIsReadAndNotDerived) {
  for (const int64_t head_dim : {128, 32}) {
    TinyModel model = m0_channel();
    model.head_dim = head_dim;
    const TinyFolder folder;
    const TinyCheckpoint checkpoint = tiny_model(model);
    checkpoint.write(folder.path());
    const Prepared prepared = planned(folder.path());
    EXPECT_EQ(prepared.records[0].view.n(), 4 * head_dim);
    expect_reference(folder.path(), checkpoint, model);
  }
}

TEST(CaseK10, NormsOfHeadsUnderRanks) {
  TinyModel model = m0();
  model.architecture = "Qwen3ForCausalLM";
  model.model_type = "qwen3";
  model.qk_norm = true;
  model.kv_heads = 4;
  const TinyFolder folder;
  tiny_model(model).write(folder.path());
  const std::vector<int32_t> ids = some_ids(9);
  const RankRows whole = run_alone(folder.path(), ids);
  for (const int ranks : {2, 4})
    EXPECT_LT(largest_difference(run_ranks(folder.path(), ids, ranks), whole), 1e-4) << ranks;
  // One norm over all heads cannot be shared: refused by name.
  const Ran ran = run_octet({"plan", "testing/data/archs/olmo2-plain", "-tp", "2"});
  EXPECT_EQ(ran.status, 3);
  EXPECT_THAT(ran.out + ran.err, HasSubstr("norms of q and k are over all heads"));
}

TEST(CaseK11, RowParallelLayersAreSummed) {
  const TinyFolder folder;
  tiny_model(m0()).write(folder.path());
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const std::vector<int32_t> ids = some_ids(5, 512, seed);
    EXPECT_LT(largest_difference(run_ranks(folder.path(), ids, 2), run_alone(folder.path(), ids)),
              1e-4);
  }
}

}  // namespace
}  // namespace octet
