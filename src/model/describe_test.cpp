#include "model/describe.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "model/prepare.h"
#include "testing/tiny_checkpoint.h"

namespace octet {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

ModelConfig config_of(const TinyModel& model) {
  return read_config(tiny_model(model).config());
}

TEST(Describe, ListsLinearLayersInTheOrderOfComputation) {
  TinyModel model;
  model.layers = 1;
  const Description description = describe(config_of(model));
  std::vector<std::string> modules;
  for (const LinearRef& ref : description.linears) modules.push_back(ref.module);
  EXPECT_THAT(modules,
              ElementsAre("model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.k_proj",
                          "model.layers.0.self_attn.v_proj", "model.layers.0.self_attn.o_proj",
                          "model.layers.0.mlp.gate_proj", "model.layers.0.mlp.up_proj",
                          "model.layers.0.mlp.down_proj", "lm_head"));
  EXPECT_EQ(description.linears[1].shape, (LayerShape{128, 256}));
  EXPECT_EQ(description.linears[6].shape, (LayerShape{256, 384}));
  EXPECT_EQ(description.linears[3].parallel, Parallel::Row);
  EXPECT_EQ(description.linears[6].parallel, Parallel::Row);
  EXPECT_EQ(description.linears[7].parallel, Parallel::Column);
}

TEST(Describe, NormsOfHeadsAreTensorsWhereTheModelHasThem) {
  TinyModel model;
  const auto names = [](const ModelConfig& config) {
    std::vector<std::string> list;
    for (const TensorRef& ref : describe(config).tensors) list.push_back(ref.name);
    return list;
  };
  EXPECT_THAT(names(config_of(model)), Not(Contains("model.layers.0.self_attn.q_norm.weight")));
  model.architecture = "Qwen3ForCausalLM";
  model.model_type = "qwen3";
  model.qk_norm = true;
  EXPECT_THAT(names(config_of(model)), Contains("model.layers.0.self_attn.q_norm.weight"));
}

TEST(Describe, PartsOfAStoredMatrixHaveItsRowsInOrder) {
  TinyModel model;
  model.layers = 1;
  model.architecture = "Phi3ForCausalLM";
  model.model_type = "phi3";
  const Description description = describe(config_of(model));
  std::vector<std::string> modules;
  for (const LinearRef& ref : description.linears) modules.push_back(ref.module);
  EXPECT_THAT(
      modules,
      ElementsAre("model.layers.0.self_attn.qkv_proj.q", "model.layers.0.self_attn.qkv_proj.k",
                  "model.layers.0.self_attn.qkv_proj.v", "model.layers.0.self_attn.o_proj",
                  "model.layers.0.mlp.gate_up_proj.gate", "model.layers.0.mlp.gate_up_proj.up",
                  "model.layers.0.mlp.down_proj", "lm_head"));
  const LinearRef& v = description.linears[2];
  EXPECT_EQ(v.stored, "model.layers.0.self_attn.qkv_proj");
  EXPECT_EQ(v.part.first_row, 384);
  EXPECT_EQ(v.part.stored_rows, 512);
  EXPECT_EQ(v.part.index, 2);
  EXPECT_EQ(v.part.count, 3);
}

TEST(Describe, AnEndTokenOutsideTheVocabularyIsANoteOfThePlan) {
  const TinyFolder folder;
  TinyCheckpoint checkpoint = tiny_model({});
  checkpoint.config()["eos_token_id"] = {2, 100000};
  checkpoint.write(folder.path());
  const Prepared prepared = prepare(folder.path(), false, probe_cpu(), {});
  EXPECT_THAT(prepared.plan.notes,
              ElementsAre(AllOf(HasSubstr("config.json: /eos_token_id: 100000"),
                                HasSubstr("outside the vocabulary of 512"))));
}

TEST(Describe, AQuantisedCacheThatIsNotComputedIsNoted) {
  TinyModel model;
  model.quant = tiny_fp8_dynamic();
  TinyCheckpoint checkpoint = tiny_model(model);
  checkpoint.config()["quantization_config"]["kv_cache_scheme"] = {{"num_bits", 8},
                                                                   {"type", "float"},
                                                                   {"strategy", "tensor"},
                                                                   {"dynamic", false},
                                                                   {"symmetric", true}};
  const TinyFolder folder;
  checkpoint.write(folder.path());
  EXPECT_THAT(prepare(folder.path(), false, probe_cpu(), {}).plan.notes,
              ElementsAre(AllOf(HasSubstr("kv_cache_scheme"), HasSubstr("holds bf16"))));
}

TEST(Describe, ExpertLayersAreListedAndThePlanRefusesThemByName) {
  const TinyFolder folder;
  tiny_model({}).write(folder.path());
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  ModelConfig config = read_config(checkpoint.config());
  config.mlp = ExpertMlp{8, 2, 384};
  const Description description = describe(config);
  EXPECT_THAT(description.experts,
              ElementsAre("model.layers.0.mlp.experts", "model.layers.1.mlp.experts"));
  std::vector<std::string> notes;
  const auto records = linear_records(checkpoint, config, description, notes);
  const PlanRequest request = plan_request(checkpoint, config, description, records, Carrier::Auto);
  EXPECT_THAT(request.unsupported,
              ElementsAre(AllOf(HasSubstr("model.layers.0.mlp.experts"), HasSubstr("expert")),
                          HasSubstr("model.layers.1.mlp.experts")));
  const ModelPlan plan = make_plan(request, probe_cpu(), {});
  EXPECT_THAT(plan.failures, Contains(HasSubstr("model.layers.1.mlp.experts")));
  try {
    require_runnable(plan);
    FAIL() << "a model with experts was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::CannotRun);
    EXPECT_THAT(error.message(), HasSubstr("model.layers.0.mlp.experts"));
  }
}

TEST(Describe, ATiedHeadIsTheEmbedding) {
  TinyModel model;
  model.tied = true;
  const TinyFolder folder;
  tiny_model(model).write(folder.path());
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  const ModelConfig config = read_config(checkpoint.config());
  const Description description = describe(config);
  std::vector<std::string> notes;
  const auto records = linear_records(checkpoint, config, description, notes);
  EXPECT_EQ(records.back().view.codes.data,
            checkpoint.view(*checkpoint.find("model.embed_tokens.weight")).data);
  const PlanRequest request = plan_request(checkpoint, config, description, records, Carrier::Auto);
  EXPECT_EQ(request.embedding_bytes, 0U);  // the head counts it
  EXPECT_EQ(request.other_bytes, 5U * 256U * 2U);
}

TEST(Describe, ABiasThatConfigAndFilesDisagreeAboutIsRefused) {
  TinyModel model;
  model.qkv_bias = true;
  TinyCheckpoint checkpoint = tiny_model(model);
  checkpoint.config()["attention_bias"] = false;
  const TinyFolder folder;
  checkpoint.write(folder.path());
  try {
    prepare(folder.path(), false, probe_cpu(), {});
    FAIL() << "the bias was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::BadInput);
    EXPECT_THAT(error.message(), AllOf(HasSubstr("q_proj"), HasSubstr("bias")));
  }
}

}  // namespace
}  // namespace octet
