// Section D of the cases, where model and files meet: tied heads and layers beyond the model's own.
#include <gmock/gmock.h>

#include "tests/cases/case_model.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

TinyModel tied_model() {
  TinyModel model = m0_channel();
  model.tied = true;
  return model;
}

std::vector<float> floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

TEST(CaseD11, ATiedHeadThatIsStoredAllTheSame) {
  const TinyModel model = tied_model();
  const std::vector<int32_t> ids = some_ids(5);
  {
    const TinyFolder folder;  // equal to the embedding: shared
    TinyCheckpoint checkpoint = tiny_model(model);
    checkpoint.add_values("lm_head.weight", DType::BF16, {512, 256},
                          floats(checkpoint.values("model.embed_tokens.weight")));
    checkpoint.write(folder.path());
    const Prepared prepared = planned(folder.path());
    EXPECT_TRUE(prepared.config.tied_embeddings);
    EXPECT_THAT(all_notes(prepared), HasSubstr("tied to the embedding"));
    expect_reference(folder.path(), checkpoint, model);
  }
  TinyModel untied = model;
  untied.tied = false;
  for (const bool quantised : {false, true}) {  // another one: used, with a warning
    untied.quant_of = [quantised](std::string_view module) {
      return module == "lm_head" && quantised ? std::optional(tiny_fp8_dynamic(DType::F32))
                                              : std::nullopt;
    };
    const TinyFolder folder;
    TinyCheckpoint checkpoint = tiny_model(untied);
    checkpoint.config()["tie_word_embeddings"] = true;
    checkpoint.write(folder.path());
    const Prepared prepared = planned(folder.path());
    EXPECT_FALSE(prepared.config.tied_embeddings);
    EXPECT_EQ(is_f8(quant_of(prepared, "lm_head").weight.dtype), quantised);
    EXPECT_THAT(all_notes(prepared),
                AllOf(HasSubstr("tie_word_embeddings"), HasSubstr("the stored head is used")));
    expect_reference(folder.path(), checkpoint, untied);
  }
}

TEST(CaseD12, ATiedModelWithoutAHeadUsesTheEmbedding) {
  const TinyFolder folder;
  const TinyModel model = tied_model();
  const TinyCheckpoint tied = tiny_model(model);
  tied.write(folder.path() / "tied");
  TinyCheckpoint copy = tiny_model(model);
  copy.add_values("lm_head.weight", DType::BF16, {512, 256},
                  floats(copy.values("model.embed_tokens.weight")));
  copy.config()["tie_word_embeddings"] = false;
  copy.config()["quantization_config"]["ignore"] = {"lm_head"};
  copy.write(folder.path() / "copy");
  expect_reference(folder.path() / "tied", tied, model);
  const std::vector<int32_t> ids = some_ids(5);
  EXPECT_EQ(our_logprobs(folder.path() / "tied", ids), our_logprobs(folder.path() / "copy", ids));
}

TEST(CaseD13, AnUntiedModelWithoutAHeadIsRefused) {
  const TinyFolder folder;
  TinyCheckpoint checkpoint = tiny_model(m0_channel());
  checkpoint.remove("lm_head.weight");
  checkpoint.write(folder.path());
  EXPECT_THAT(refusal_of([&] { planned(folder.path()); }),
              AllOf(HasSubstr("lm_head.weight"), HasSubstr("tie_word_embeddings")));
}

// One decoder layer called `layer` beyond those of the model.
void add_extra_layer(TinyCheckpoint& checkpoint, const std::string& layer) {
  checkpoint.add_linear(layer + ".self_attn.q_proj", 256, 256, tiny_fp8_dynamic(DType::F32));
  checkpoint.add_normal(layer + ".input_layernorm.weight", DType::BF16, {256}, 0.1F, 1);
  checkpoint.add_normal(layer + ".eh_proj.weight", DType::BF16, {256, 512}, 0.1F);
}

TEST(CaseD18, PredictionLayersAreSkippedWithOneLineAndOthersRefused) {
  struct Form {
    bool wrapped;
    int declared;
  };
  for (const Form& form : {Form{false, 1}, Form{true, 1}, Form{false, 0}}) {
    const TinyFolder folder;
    TinyCheckpoint checkpoint = tiny_model(m0_channel());
    add_extra_layer(checkpoint, "model.layers.2");
    checkpoint.config()["num_nextn_predict_layers"] = form.declared;
    if (form.wrapped) {
      checkpoint.move_all("model.", "model.language_model.");
      json text = checkpoint.config();
      const json quant = text["quantization_config"];
      checkpoint.config() = {{"architectures", {"LlavaForConditionalGeneration"}},
                             {"text_config", text},
                             {"quantization_config", quant}};
    }
    checkpoint.write(folder.path());
    const std::string notes = all_notes(planned(folder.path()));
    EXPECT_THAT(notes, HasSubstr("4 tensors skipped: extra prediction layers"));
  }
  const TinyFolder folder;
  TinyCheckpoint checkpoint = tiny_model(m0_channel());
  add_extra_layer(checkpoint, "model.layers.5");
  checkpoint.config()["num_nextn_predict_layers"] = 1;
  checkpoint.write(folder.path());
  EXPECT_THAT(refusal_of([&] { planned(folder.path()); }), HasSubstr("model.layers.5."));
}

}  // namespace
}  // namespace octet
