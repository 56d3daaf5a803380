// Section I of the cases, as far as the cache holds no 8-bit floats: scales of one are recognised
// under every spelling and skipped with one line.
#include <gmock/gmock.h>

#include "tests/cases/case_model.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

void ask_for_a_quantised_cache(TinyCheckpoint& checkpoint) {
  checkpoint.config()["quantization_config"]["kv_cache_scheme"] = {{"num_bits", 8},
                                                                   {"type", "float"},
                                                                   {"strategy", "tensor"},
                                                                   {"dynamic", false},
                                                                   {"symmetric", true}};
}

void add_scales(TinyCheckpoint& checkpoint, const std::vector<const char*>& leaves,
                const Shape& shape) {
  const float scale = 0.02F;
  for (int layer = 0; layer < 2; ++layer) {
    for (const char* leaf : leaves)
      checkpoint.add_values(fmt::format("model.layers.{}.{}", layer, leaf), DType::F32, shape,
                            std::span(&scale, 1));
  }
}

TEST(CaseI01, StoredScalesOfTheCacheAreNamedAsUnused) {
  const TinyFolder folder;
  const TinyModel model = m0_channel();
  TinyCheckpoint checkpoint = tiny_model(model);
  ask_for_a_quantised_cache(checkpoint);
  add_scales(checkpoint, {"self_attn.k_scale", "self_attn.v_scale"}, {1});
  checkpoint.write(folder.path());
  EXPECT_THAT(all_notes(planned(folder.path())),
              AllOf(HasSubstr("4 tensors skipped: scales of a quantised KV cache"),
                    HasSubstr("kv_cache_scheme has no effect")));
  expect_reference(folder.path(), checkpoint, model);
}

TEST(CaseI02, EverySpellingOfTheScalesIsKnownAndOthersAreRefused) {
  const std::vector<std::vector<const char*>> spellings{
      {"self_attn.k_scale", "self_attn.v_scale"},
      {"self_attn.kv_scale"},
      {"self_attn.k_proj.output_scale", "self_attn.v_proj.output_scale"},
      {"self_attn.k_proj.k_scale", "self_attn.v_proj.v_scale"}};
  for (const auto& leaves : spellings) {
    for (const Shape& shape : {Shape{}, Shape{1}}) {
      const TinyFolder folder;
      TinyCheckpoint checkpoint = tiny_model(m0_channel());
      ask_for_a_quantised_cache(checkpoint);
      add_scales(checkpoint, leaves, shape);
      checkpoint.write(folder.path());
      EXPECT_THAT(all_notes(planned(folder.path())),
                  HasSubstr("skipped: scales of a quantised KV cache"))
          << leaves.front();
    }
  }
  const TinyFolder folder;
  TinyCheckpoint checkpoint = tiny_model(m0_channel());
  ask_for_a_quantised_cache(checkpoint);
  add_scales(checkpoint, {"self_attn.key_cache_factor"}, {1});
  checkpoint.write(folder.path());
  EXPECT_THAT(refusal_of([&] { planned(folder.path()); }), HasSubstr("key_cache_factor"));
}

TEST(CaseI03, ACacheOfE5M2IsNotedAsNotComputed) {
  const TinyFolder folder;
  TinyCheckpoint checkpoint = tiny_model(m0_channel());
  ask_for_a_quantised_cache(checkpoint);
  checkpoint.write(folder.path());
  const Prepared prepared = planned(folder.path());
  EXPECT_FALSE(is_f8(prepared.plan.kv.dtype));
  EXPECT_THAT(all_notes(prepared), HasSubstr("not 8-bit floats"));
}

TEST(CaseI04, ACacheSchemeWithoutScalesChangesNothingAndSaysSo) {
  const TinyFolder folder;
  const TinyModel model = m0_channel();
  TinyCheckpoint checkpoint = tiny_model(model);
  ask_for_a_quantised_cache(checkpoint);
  checkpoint.write(folder.path());
  EXPECT_THAT(all_notes(planned(folder.path())), HasSubstr("kv_cache_scheme has no effect"));
  expect_reference(folder.path(), checkpoint, model);
}

}  // namespace
}  // namespace octet
