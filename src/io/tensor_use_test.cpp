#include "io/tensor_use.h"

#include <nlohmann/json.hpp>

#include "testing/broken_files.h"

namespace octet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class TensorUseTest : public testing::Test {
 protected:
  // Opens a checkpoint of tiny tensors with these names.
  void open(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      tiny_.add(name, DType::U8, Shape{1}, std::vector<std::byte>(1));
    }
    checkpoint_.emplace(Checkpoint::open(tiny_.write(folder_.path() / "m")));
    use_.emplace(*checkpoint_);
  }
  std::string refusal() {
    return bad_input([&] { use_->finish(); });
  }

  TinyFolder folder_;
  TinyCheckpoint tiny_;
  std::optional<Checkpoint> checkpoint_;
  std::optional<TensorUse> use_;
};

TEST_F(TensorUseTest, IsContentWhenEveryTensorIsUsedOnce) {
  open({"a", "b"});
  use_->use("a");
  use_->use("b");
  use_->finish();
  EXPECT_THAT(use_->skipped(), IsEmpty());
}

TEST_F(TensorUseTest, ListsWhatWasNotUsed) {
  open({"a", "b", "c.weight_scale"});
  use_->use("a");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("2 not used by this model: b, c.weight_scale"),
                               Not(HasSubstr("more than once"))));
}

TEST_F(TensorUseTest, ListsWhatWasUsedTwice) {
  open({"a", "b"});
  for (const char* name : {"a", "b", "a", "a"}) use_->use(name);
  EXPECT_THAT(refusal(), HasSubstr("1 used more than once: a"));
}

TEST_F(TensorUseTest, UsingOrSkippingAnAbsentTensorIsRefused) {
  open({"a"});
  EXPECT_THAT(bad_input([&] { use_->use("ghost"); }), HasSubstr("tensor \"ghost\" is absent"));
  EXPECT_THAT(bad_input([&] { use_->skip("ghost", "why"); }), HasSubstr("ghost"));
}

TEST_F(TensorUseTest, SkippedTensorsArePrintedWithTheirReason) {
  open({"lm_head.weight", "a"});
  use_->use("a");
  use_->skip("lm_head.weight", "the head is tied and equals the embedding");
  use_->finish();
  EXPECT_THAT(use_->skipped(), ElementsAre("1 tensor skipped: the head is tied and equals the "
                                           "embedding (lm_head.weight)"));
}

TEST_F(TensorUseTest, ATensorIsEitherUsedOrSkipped) {
  open({"a", "b"});
  use_->use("a");
  use_->skip("a", "no");
  use_->skip("b", "no");
  use_->use("b");
  EXPECT_THAT(refusal(), HasSubstr("2 used more than once: a, b"));
}

TEST_F(TensorUseTest, RotaryFrequenciesAndKvScalesAreSkippedInOneLineEach) {
  open({"model.layers.0.self_attn.rotary_emb.inv_freq", "model.layers.0.self_attn.k_scale",
        "model.layers.0.self_attn.v_scale", "model.layers.1.self_attn.k_proj.output_scale",
        "model.layers.1.self_attn.attn.v_scale", "model.layers.1.self_attn.q_scale",
        "model.layers.1.self_attn.kv_scale", "model.layers.1.self_attn.k_cache.scale",
        "model.layers.1.self_attn.k_zero_point"});
  use_->finish();
  EXPECT_THAT(use_->skipped(),
              ElementsAre(HasSubstr("8 tensors skipped: scales of a quantised KV cache"),
                          HasSubstr("1 tensor skipped: rotary frequencies")));
}

TEST_F(TensorUseTest, ZeroPointsAndOutputScalesAreSkipped) {
  open({"m.q_proj.weight_zero_point", "m.q_proj.input_zero_point", "m.o_proj.output_scale"});
  use_->finish();
  EXPECT_EQ(use_->skipped().size(), 2U);
}

TEST_F(TensorUseTest, AllThatIsNotUsedIsKeptThoughTheMessageNamesEight) {
  for (int i = 0; i < 11; ++i)
    tiny_.add(fmt::format("extra.{}", i), DType::U8, Shape{1}, std::vector<std::byte>(1));
  open({});
  EXPECT_THAT(refusal(), HasSubstr("11 not used by this model: extra.0, extra.1"));
  EXPECT_THAT(refusal(), HasSubstr(" and 3 more"));
  EXPECT_EQ(use_->unused().size(), 11U);
}

TEST_F(TensorUseTest, OnlyWholeComponentsAreSkipped) {
  open({"model.layers.0.my_k_scale"});
  EXPECT_THAT(refusal(), HasSubstr("model.layers.0.my_k_scale"));
}

TEST_F(TensorUseTest, LeftoverWeightScalesAreAlwaysFatal) {
  for (const char* name : {"m.weight_scale", "m.weight_scale_inv", "m.input_scale", "m.scale"}) {
    tiny_ = TinyCheckpoint();
    open({name});
    EXPECT_THAT(refusal(), HasSubstr(name));
  }
}

TEST_F(TensorUseTest, AUsedKvScaleIsNotSkipped) {
  open({"model.layers.0.self_attn.k_scale"});
  use_->use("model.layers.0.self_attn.k_scale");
  use_->finish();
  EXPECT_THAT(use_->skipped(), IsEmpty());
}

TEST_F(TensorUseTest, D18DeclaredPredictionLayersAreSkippedOthersAreNot) {
  for (const int declared : {1, 0}) {
    for (const char* name : {"model.layers.2.mlp.up_proj.weight",
                             "model.language_model.layers.2.mlp.up_proj.weight"}) {
      tiny_ = TinyCheckpoint();
      tiny_.config() = {{"num_hidden_layers", 2}, {"num_nextn_predict_layers", declared}};
      open({name});
      use_->finish();
      EXPECT_THAT(use_->skipped(), ElementsAre(HasSubstr("extra prediction layers")));
    }
  }
  tiny_ = TinyCheckpoint();
  tiny_.config() = {{"num_hidden_layers", 2}, {"num_nextn_predict_layers", 1}};
  open({"model.layers.5.mlp.up_proj.weight"});
  EXPECT_THAT(refusal(), HasSubstr("model.layers.5"));
  tiny_ = TinyCheckpoint();
  tiny_.config() = {{"num_hidden_layers", 2}};
  open({"model.layers.2.mlp.up_proj.weight"});
  EXPECT_THAT(refusal(), HasSubstr("model.layers.2"));
}

}  // namespace
}  // namespace octet
