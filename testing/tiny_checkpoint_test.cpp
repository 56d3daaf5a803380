#include "testing/tiny_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/linear_record.h"
#include "io/tensor_use.h"

namespace octet {
namespace {

struct Scheme {
  const char* name;
  LayerQuant quant;
  TinyDialect dialect;
};

void PrintTo(const Scheme& scheme, std::ostream* out) {
  *out << scheme.name;
}

LayerQuant e5m2() {
  LayerQuant quant = tiny_fp8_dynamic();
  quant.weight.dtype = DType::F8E5M2;
  return quant;
}

LayerQuant dynamic_tensor() {
  LayerQuant quant = tiny_fp8_static();
  quant.input = QuantSpec{DType::F8E4M3, ScaleTile::row(), DType::F32, ScaleTiming::Dynamic};
  quant.per_token_for_tensor = true;
  return quant;
}

const std::vector<Scheme> kSchemes{
    {"plain_bf16", tiny_plain(), TinyDialect::CompressedTensors},
    {"plain_f16", tiny_plain(DType::F16), TinyDialect::CompressedTensors},
    {"plain_f32", tiny_plain(DType::F32), TinyDialect::CompressedTensors},
    {"static_tensor", tiny_fp8_static(), TinyDialect::CompressedTensors},
    {"dynamic_tensor", dynamic_tensor(), TinyDialect::CompressedTensors},
    {"dynamic_token", tiny_fp8_dynamic(), TinyDialect::CompressedTensors},
    {"block128", tiny_fp8_block(), TinyDialect::CompressedTensors},
    {"block32x64", tiny_fp8_block(32, 64, DType::F32), TinyDialect::CompressedTensors},
    {"block1x128", tiny_fp8_block(1, 128, DType::F16), TinyDialect::CompressedTensors},
    {"weight_only_row", tiny_fp8_weight_only(), TinyDialect::CompressedTensors},
    {"weight_only_group", tiny_fp8_weight_only(ScaleTile::group(48), DType::F16),
     TinyDialect::CompressedTensors},
    {"mxfp8", tiny_mxfp8(), TinyDialect::CompressedTensors},
    {"e5m2", e5m2(), TinyDialect::CompressedTensors},
    {"fp8_static", tiny_fp8_static(DType::F32), TinyDialect::Fp8},
    {"fp8_row", tiny_fp8_dynamic(DType::F32), TinyDialect::Fp8},
    {"fp8_block", tiny_fp8_block(128, 128, DType::F32), TinyDialect::Fp8},
};

class TinyModelTest : public testing::TestWithParam<Scheme> {};

// The value that a record gives element (r, c), by the formula of QuantView.
double value_of(const QuantView& view, int64_t r, int64_t c) {
  const double code = element(view.codes, r * view.codes.row_stride + c);
  if (!is_f8(view.spec.dtype)) return code;
  return code * element(view.scales, view.spec.tile.tile_row(r) * view.scales.row_stride +
                                         view.spec.tile.tile_col(c));
}

TEST_P(TinyModelTest, ReadsBackAsTheSchemeThatItWasWrittenWith) {
  TinyModel model;
  model.quant = GetParam().quant;
  model.dialect = GetParam().dialect;
  TinyCheckpoint tiny = tiny_model(model);
  const TinyFolder folder;
  const Checkpoint checkpoint = Checkpoint::open(tiny.write(folder.path() / "m"));
  const LinearRecord q = linear_record(checkpoint, "model.layers.1.self_attn.q_proj", 256, 256);
  EXPECT_EQ(q.quant, model.quant);
  EXPECT_EQ(q.view.spec, model.quant.weight);
}

TEST_P(TinyModelTest, RecordsMeanTheValuesThatTheWriterStates) {
  TinyModel model;
  model.quant = GetParam().quant;
  model.dialect = GetParam().dialect;
  TinyCheckpoint tiny = tiny_model(model);
  const TinyFolder folder;
  const Checkpoint checkpoint = Checkpoint::open(tiny.write(folder.path() / "m", 3));
  const std::string module = "model.layers.1.mlp.down_proj";
  const LinearRecord down = linear_record(checkpoint, module, 256, 384);
  const std::vector<double>& values = tiny.values(module + ".weight");
  for (int64_t r = 0; r < 256; ++r) {
    for (int64_t c = 0; c < 384; ++c) {
      ASSERT_EQ(value_of(down.view, r, c), values[static_cast<size_t>(r * 384 + c)])
          << r << "," << c;
    }
  }
}

TEST_P(TinyModelTest, EveryTensorBelongsToTheModel) {
  TinyModel model;
  model.quant = GetParam().quant;
  model.dialect = GetParam().dialect;
  const TinyFolder folder;
  const Checkpoint checkpoint = Checkpoint::open(tiny_model(model).write(folder.path() / "m"));
  TensorUse use(checkpoint);
  for (const char* name : {"model.embed_tokens.weight", "model.norm.weight"}) use.use(name);
  const auto linear = [&](const std::string& module, int64_t n, int64_t k) {
    for (const std::string_view name : linear_record(checkpoint, module, n, k).tensors) {
      use.use(name);
    }
  };
  for (int i = 0; i < 2; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    use.use(layer + "input_layernorm.weight");
    use.use(layer + "post_attention_layernorm.weight");
    linear(layer + "self_attn.q_proj", 256, 256);
    linear(layer + "self_attn.k_proj", 128, 256);
    linear(layer + "self_attn.v_proj", 128, 256);
    linear(layer + "self_attn.o_proj", 256, 256);
    linear(layer + "mlp.gate_proj", 384, 256);
    linear(layer + "mlp.up_proj", 384, 256);
    linear(layer + "mlp.down_proj", 256, 384);
  }
  linear("lm_head", 512, 256);
  EXPECT_NO_THROW(use.finish());
  EXPECT_TRUE(use.skipped().empty());
}

INSTANTIATE_TEST_SUITE_P(Schemes, TinyModelTest, testing::ValuesIn(kSchemes),
                         [](const auto& scheme) { return scheme.param.name; });

TEST(TinyCheckpoint, GivesOtherModulesTheirOwnGroup) {
  TinyModel model;
  model.quant = tiny_fp8_dynamic();
  model.quant_of = [](std::string_view module) -> std::optional<LayerQuant> {
    if (module.ends_with("o_proj")) return tiny_fp8_block();
    if (module.ends_with("v_proj")) return tiny_plain();
    return std::nullopt;
  };
  const TinyFolder folder;
  const Checkpoint checkpoint = Checkpoint::open(tiny_model(model).write(folder.path() / "m"));
  const auto quant = [&](const char* leaf, int64_t n) {
    return linear_record(checkpoint, fmt::format("model.layers.0.self_attn.{}", leaf), n, 256)
        .quant;
  };
  EXPECT_EQ(quant("q_proj", 256), tiny_fp8_dynamic());
  EXPECT_EQ(quant("o_proj", 256), tiny_fp8_block());
  EXPECT_EQ(quant("v_proj", 128), tiny_plain());
}

TEST(TinyCheckpoint, TheSameSeedGivesTheSameBytes) {
  const TinyFolder folder;
  TinyModel model;
  model.quant = tiny_fp8_dynamic();
  const Checkpoint a = Checkpoint::open(tiny_model(model).write(folder.path() / "a"));
  const Checkpoint b = Checkpoint::open(tiny_model(model).write(folder.path() / "b"));
  model.seed = 2;
  const Checkpoint c = Checkpoint::open(tiny_model(model).write(folder.path() / "c"));
  const auto bytes = [](const Checkpoint& checkpoint) {
    const TensorEntry& entry = *checkpoint.find("model.layers.0.mlp.up_proj.weight");
    return std::string(reinterpret_cast<const char*>(checkpoint.view(entry).data), entry.bytes);
  };
  EXPECT_EQ(bytes(a), bytes(b));
  EXPECT_NE(bytes(a), bytes(c));
}

TEST(TinyCheckpoint, BlockScalesHaveAnEntryForEveryPartialBlock) {
  TinyCheckpoint tiny;
  tiny.add_linear("m", 200, 300, tiny_fp8_block());
  tiny.quantise_config();
  const TinyFolder folder;
  const Checkpoint checkpoint = Checkpoint::open(tiny.write(folder.path() / "m"));
  EXPECT_EQ(checkpoint.find("m.weight_scale")->shape, (Shape{2, 3}));
}

}  // namespace
}  // namespace octet
