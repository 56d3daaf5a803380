#include "io/linear_record.h"

#include <nlohmann/json.hpp>

#include "testing/broken_files.h"

namespace octet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// A checkpoint of one linear layer "m" [n, k], written and opened again.
class LinearRecordTest : public testing::Test {
 protected:
  static constexpr int64_t kN = 256;
  static constexpr int64_t kK = 384;

  TinyCheckpoint layer(const LayerQuant& quant, int64_t n = kN, int64_t k = kK,
                       TinyDialect dialect = TinyDialect::CompressedTensors) {
    TinyCheckpoint tiny;
    tiny.add_linear("m", n, k, quant);
    tiny.quantise_config(dialect);
    return tiny;
  }
  LinearRecord read(const TinyCheckpoint& tiny, int64_t n = kN, int64_t k = kK) {
    open(tiny);
    return linear_record(*checkpoint_, "m", n, k);
  }
  std::string refusal(const TinyCheckpoint& tiny, int64_t n = kN, int64_t k = kK) {
    open(tiny);
    return bad_input([&] { linear_record(*checkpoint_, "m", n, k); });
  }
  void open(const TinyCheckpoint& tiny) {
    checkpoint_.reset();
    checkpoint_.emplace(
        Checkpoint::open(tiny.write(folder_.path() / fmt::format("m{}", ++count_))));
  }
  // The tensor `name` replaced by ones of another shape.
  static void reshape(TinyCheckpoint& tiny, const std::string& name, DType dtype, Shape shape) {
    const std::vector<float> ones(static_cast<size_t>(shape.elements()), 1.0F);
    tiny.add_values(name, dtype, shape, ones);
  }

  TinyFolder folder_;
  int count_ = 0;
  std::optional<Checkpoint> checkpoint_;  // the views of the last record look into it
};

TEST_F(LinearRecordTest, JoinsCodesScalesInputScaleAndBias) {
  TinyCheckpoint tiny;
  tiny.add_linear("m", kN, kK, tiny_fp8_static(), true);
  tiny.quantise_config();
  const LinearRecord record = read(tiny);
  EXPECT_EQ(record.module, "m");
  EXPECT_EQ(record.quant, tiny_fp8_static());
  EXPECT_EQ(record.view.spec, record.quant.weight);
  EXPECT_EQ(record.view.n(), kN);
  EXPECT_EQ(record.view.k(), kK);
  EXPECT_TRUE(record.view.has_bias);
  EXPECT_TRUE(record.view.has_input_scale);
  EXPECT_THAT(record.tensors,
              UnorderedElementsAre("m.weight", "m.weight_scale", "m.input_scale", "m.bias"));
}

TEST_F(LinearRecordTest, PlainWeightsHaveNoScales) {
  for (const DType dtype : {DType::BF16, DType::F16, DType::F32}) {
    const LinearRecord record = read(layer(tiny_plain(dtype)));
    EXPECT_EQ(record.view.spec.dtype, dtype);
    EXPECT_EQ(record.view.scales.data, nullptr);
    EXPECT_FALSE(record.quant.input);
    EXPECT_FALSE(record.view.has_bias);
    EXPECT_THAT(record.tensors, ElementsAre("m.weight"));
  }
}

TEST_F(LinearRecordTest, BothSpellingsOfTheScaleGiveEqualRecords) {
  TinyCheckpoint tiny = layer(tiny_fp8_block());
  const LinearRecord plain = read(tiny);
  const std::vector<double> values = tiny.values("m.weight_scale");
  tiny.rename("m.weight_scale", "m.weight_scale_inv");
  const LinearRecord inverse = read(tiny);
  EXPECT_EQ(plain.quant, inverse.quant);
  EXPECT_EQ(plain.view.spec, inverse.view.spec);
  EXPECT_EQ(plain.view.scales.shape, inverse.view.scales.shape);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(element(inverse.view.scales, static_cast<int64_t>(i)), values[i]);
  }
}

TEST_F(LinearRecordTest, BothSpellingsAtOnceAreRefused) {
  TinyCheckpoint tiny = layer(tiny_fp8_dynamic());
  reshape(tiny, "m.weight_scale_inv", DType::F32, Shape{kN, 1});
  EXPECT_THAT(refusal(tiny), HasSubstr("both \"m.weight_scale\" and \"m.weight_scale_inv\""));
}

TEST_F(LinearRecordTest, ASquareWeightKeepsItsOrientation) {
  TinyCheckpoint tiny = layer(tiny_fp8_dynamic(), 64, 64);
  const LinearRecord record = read(tiny, 64, 64);
  const std::vector<double>& values = tiny.values("m.weight");
  const double scale = element(record.view.scales, 3);
  EXPECT_EQ(element(record.view.codes, 3 * 64 + 5) * scale, values[3 * 64 + 5]);
  EXPECT_NE(values[3 * 64 + 5], values[5 * 64 + 3]);
}

TEST_F(LinearRecordTest, ATransposedWeightIsRefusedWithBothShapes) {
  EXPECT_THAT(
      refusal(layer(tiny_fp8_dynamic(), kK, kN)),
      AllOf(HasSubstr("[384, 256]"), HasSubstr("expected [256, 384]"), HasSubstr("transposed")));
}

TEST_F(LinearRecordTest, OtherShapesAndRanksAreRefused) {
  EXPECT_THAT(refusal(layer(tiny_fp8_dynamic(), 250, kK)),
              AllOf(HasSubstr("\"m.weight\" is F8_E4M3 [250, 384]"), HasSubstr("[256, 384]")));
  TinyCheckpoint tiny = layer(tiny_fp8_dynamic());
  reshape(tiny, "m.weight", DType::F8E4M3, Shape{kN, kK, 1});
  EXPECT_THAT(refusal(tiny), HasSubstr("[256, 384, 1]"));
}

TEST_F(LinearRecordTest, OtherWeightTypesAreRefused) {
  TinyCheckpoint tiny = layer(tiny_plain());
  tiny.add("m.weight", DType::I8, {kN, kK}, std::vector<std::byte>(kN * kK));
  EXPECT_THAT(refusal(tiny), HasSubstr("\"m.weight\" is I8 [256, 384], expected F8_E4M3"));
}

TEST_F(LinearRecordTest, AnAbsentWeightIsNamed) {
  TinyCheckpoint tiny = layer(tiny_fp8_dynamic());
  tiny.remove("m.weight");
  EXPECT_THAT(refusal(tiny), AllOf(HasSubstr("tensor \"m.weight\" is absent"),
                                   HasSubstr("weight_scale BF16 [256, 1]")));
  EXPECT_FALSE(has_linear(*checkpoint_, "m"));
  EXPECT_TRUE(has_linear(Checkpoint::open(layer(tiny_plain()).write(folder_.path() / "p")), "m"));
}

TEST_F(LinearRecordTest, D16AnAbsentScaleIsNamedWithWhatIsThere) {
  TinyCheckpoint tiny = layer(tiny_fp8_dynamic());
  tiny.remove("m.weight_scale");
  EXPECT_THAT(refusal(tiny), AllOf(HasSubstr("tensor \"m.weight_scale\" is absent"),
                                   HasSubstr("m.weight_scale_inv"), HasSubstr("row scales")));
}

TEST_F(LinearRecordTest, B22AScaleOfAnotherNameIsAnError) {
  TinyCheckpoint tiny = layer(tiny_fp8_static());
  tiny.rename("m.weight_scale", "m.scale_weight");
  EXPECT_THAT(refusal(tiny),
              AllOf(HasSubstr("\"m.weight_scale\" is absent"), HasSubstr("scale_weight BF16 [1]")));
}

TEST_F(LinearRecordTest, B08ATensorScaleMayHaveAnyRankUpToTwo) {
  TinyCheckpoint tiny = layer(tiny_fp8_static());
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{1, 1}}) {
    reshape(tiny, "m.weight_scale", DType::F32, shape);
    const LinearRecord record = read(tiny);
    EXPECT_EQ(record.view.scales.shape, (Shape{1, 1}));
    EXPECT_EQ(record.view.spec.tile, ScaleTile::tensor());
  }
}

TEST_F(LinearRecordTest, B09RowScalesAreNx1OrN) {
  TinyCheckpoint tiny = layer(tiny_fp8_dynamic());
  for (const Shape& shape : {Shape{kN, 1}, Shape{kN}}) {
    reshape(tiny, "m.weight_scale", DType::F32, shape);
    const LinearRecord record = read(tiny);
    EXPECT_EQ(record.view.scales.shape, (Shape{kN, 1}));
    EXPECT_EQ(record.view.scales.row_stride, 1);
  }
  for (const Shape& shape : {Shape{1, kN}, Shape{kN - 1}, Shape{kN - 1, 1}, Shape{1}}) {
    reshape(tiny, "m.weight_scale", DType::F32, shape);
    EXPECT_THAT(refusal(tiny), AllOf(HasSubstr(to_string(shape)), HasSubstr("expected [256, 1]")));
  }
}

TEST_F(LinearRecordTest, C07AScaleOfTwoEntriesFitsNothing) {
  TinyCheckpoint tensor = layer(tiny_fp8_static());
  reshape(tensor, "m.weight_scale", DType::F32, Shape{2});
  EXPECT_THAT(refusal(tensor), AllOf(HasSubstr("F32 [2]"), HasSubstr("expected 1 value")));
  TinyCheckpoint fp8 = layer(tiny_fp8_dynamic(), kN, kK, TinyDialect::Fp8);
  reshape(fp8, "m.weight_scale", DType::F32, Shape{2});
  EXPECT_THAT(refusal(fp8), AllOf(HasSubstr("F32 [2]"), HasSubstr("expected 1 or 256 values")));
}

TEST_F(LinearRecordTest, C11Fp8WithRowScalesEqualsCompressedTensorsWithRowScales) {
  const LinearRecord fp8 = read(layer(tiny_fp8_dynamic(), kN, kK, TinyDialect::Fp8));
  const LinearRecord ct = read(layer(tiny_fp8_dynamic()));
  EXPECT_EQ(fp8.quant, ct.quant);
}

TEST_F(LinearRecordTest, B01BlockGridsCountThePartialBlocks) {
  TinyCheckpoint tiny = layer(tiny_fp8_block(), 200, 300);
  const LinearRecord record = read(tiny, 200, 300);
  EXPECT_EQ(record.view.scales.shape, (Shape{2, 3}));
  EXPECT_EQ(record.view.scales.row_stride, 3);
  EXPECT_EQ(record.view.spec.tile, ScaleTile::block(128, 128));
  reshape(tiny, "m.weight_scale", DType::F32, Shape{1, 2});
  EXPECT_THAT(refusal(tiny, 200, 300),
              AllOf(HasSubstr("[1, 2]"), HasSubstr("expected [2, 3] for block128x128")));
  reshape(tiny, "m.weight_scale", DType::F32, Shape{3, 2});
  refusal(tiny, 200, 300);
  reshape(tiny, "m.weight_scale", DType::F32, Shape{6});
  refusal(tiny, 200, 300);
}

TEST_F(LinearRecordTest, C03AnyBlockAndGroupSize) {
  for (const auto& [rows, cols] : {std::pair(64, 64), {128, 64}, {1, 128}, {32, 32}, {999, 7}}) {
    const LayerQuant quant = tiny_fp8_block(rows, cols);
    EXPECT_EQ(read(layer(quant)).quant, quant) << rows << "x" << cols;
  }
  const LayerQuant group = tiny_fp8_weight_only(ScaleTile::group(100));
  EXPECT_EQ(read(layer(group)).view.scales.shape, (Shape{kN, 4}));
}

TEST_F(LinearRecordTest, B10ScalesMayBeF32BF16OrF16) {
  for (const DType dtype : {DType::F32, DType::BF16, DType::F16}) {
    TinyCheckpoint tiny = layer(tiny_fp8_block());
    reshape(tiny, "m.weight_scale", dtype, Shape{2, 3});
    const LinearRecord record = read(tiny);
    EXPECT_EQ(record.view.spec.scale_dtype, dtype);
    EXPECT_EQ(record.quant.weight.scale_dtype, dtype);
    EXPECT_EQ(element(record.view.scales, 5), 1.0F);
  }
}

TEST_F(LinearRecordTest, ScalesOfOtherTypesAreRefused) {
  TinyCheckpoint tiny = layer(tiny_fp8_block());
  tiny.add("m.weight_scale", DType::U8, {2, 3}, std::vector<std::byte>(6));
  EXPECT_THAT(refusal(tiny), HasSubstr("U8 [2, 3], expected F32, BF16 or F16"));
  tiny.add("m.weight_scale", DType::I32, {2, 3}, std::vector<std::byte>(24));
  EXPECT_THAT(refusal(tiny), HasSubstr("I32 [2, 3]"));
}

TEST_F(LinearRecordTest, MxScalesAreBytesReadAsE8M0) {
  TinyCheckpoint tiny = layer(tiny_mxfp8());
  const LinearRecord record = read(tiny);
  EXPECT_EQ(record.quant, tiny_mxfp8());
  EXPECT_EQ(record.view.scales.dtype, DType::F8E8M0);
  EXPECT_EQ(record.view.scales.shape, (Shape{kN, kK / 32}));
  EXPECT_EQ(element(record.view.scales, 7), tiny.values("m.weight_scale")[7]);
  reshape(tiny, "m.weight_scale", DType::F32, Shape{kN, kK / 32});
  EXPECT_THAT(refusal(tiny), HasSubstr("expected U8 or F8_E8M0"));
}

TEST_F(LinearRecordTest, C12MxNeedsWholeGroups) {
  EXPECT_EQ(read(layer(tiny_mxfp8(), 32, 96), 32, 96).quant, tiny_mxfp8());
  EXPECT_THAT(refusal(layer(tiny_mxfp8(), 32, 80), 32, 80),
              HasSubstr("K=80 is not a multiple of 32"));
}

TEST_F(LinearRecordTest, D17E5M2KeepsItsType) {
  LayerQuant quant = tiny_fp8_dynamic();
  quant.weight.dtype = DType::F8E5M2;
  EXPECT_EQ(read(layer(quant)).quant, quant);
}

TEST_F(LinearRecordTest, AStaticInputNeedsItsScale) {
  TinyCheckpoint tiny = layer(tiny_fp8_static());
  tiny.remove("m.input_scale");
  EXPECT_THAT(refusal(tiny), HasSubstr("tensor \"m.input_scale\" is absent, expected the static"));
}

TEST_F(LinearRecordTest, AnInputScaleIsConsumedWhereTheConfigDoesNotUseIt) {
  for (const LayerQuant& quant : {tiny_fp8_weight_only(), tiny_fp8_dynamic()}) {
    TinyCheckpoint tiny = layer(quant);
    reshape(tiny, "m.input_scale", DType::F32, Shape{1});
    const LinearRecord record = read(tiny);
    EXPECT_EQ(record.quant, quant);
    EXPECT_TRUE(record.view.has_input_scale);
    EXPECT_THAT(record.tensors, testing::Contains("m.input_scale"));
  }
}

TEST_F(LinearRecordTest, InputScalesAreOnePositiveNumber) {
  TinyCheckpoint tiny = layer(tiny_fp8_static());
  for (const float bad : {0.0F, -1.0F, std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    tiny.add_values("m.input_scale", DType::F32, Shape{1}, std::span(&bad, 1));
    EXPECT_THAT(refusal(tiny), HasSubstr("expected a positive number")) << bad;
  }
  reshape(tiny, "m.input_scale", DType::F32, Shape{2});
  EXPECT_THAT(refusal(tiny), HasSubstr("\"m.input_scale\" is F32 [2], expected 1 value"));
  tiny.add("m.input_scale", DType::U8, Shape{1}, std::vector<std::byte>(1));
  EXPECT_THAT(refusal(tiny), HasSubstr("expected F32, BF16 or F16"));
}

TEST_F(LinearRecordTest, ABiasHasNEntries) {
  TinyCheckpoint tiny = layer(tiny_plain());
  reshape(tiny, "m.bias", DType::BF16, Shape{kK});
  EXPECT_THAT(refusal(tiny), HasSubstr("\"m.bias\" is BF16 [384], expected [256]"));
}

TEST_F(LinearRecordTest, A17AnUnquantisedWeightUnderAQuantisedNameIsRefused) {
  TinyCheckpoint tiny = layer(tiny_fp8_dynamic());
  tiny.remove("m.weight_scale");
  reshape(tiny, "m.weight", DType::BF16, Shape{kN, kK});
  EXPECT_THAT(refusal(tiny),
              AllOf(HasSubstr("\"m.weight\" is BF16, but the config quantises \"m\""),
                    HasSubstr("group_0 target \"Linear\", no ignore entry names it")));
}

TEST_F(LinearRecordTest, B07CodesUnderAnExcludedNameAreRefusedWithTheirScale) {
  TinyCheckpoint tiny = layer(tiny_fp8_block(), kN, kK, TinyDialect::Fp8);
  tiny.config()["quantization_config"]["modules_to_not_convert"] = {"m"};
  EXPECT_THAT(refusal(tiny),
              AllOf(HasSubstr("\"m.weight\" is F8_E4M3 with scales \"m.weight_scale_inv\""),
                    HasSubstr("modules_to_not_convert \"m\"")));
  tiny.config().erase("quantization_config");
  EXPECT_THAT(refusal(tiny), HasSubstr("config.json has no quantization_config"));
}

TEST_F(LinearRecordTest, AScaleBesideAPlainWeightIsRefused) {
  TinyCheckpoint tiny = layer(tiny_plain());
  reshape(tiny, "m.weight_scale", DType::BF16, Shape{kN, 1});
  EXPECT_THAT(refusal(tiny), HasSubstr("is BF16, but has scales \"m.weight_scale\" [256, 1]"));
}

TEST_F(LinearRecordTest, A16WhereReadersDisagreeTheStoredTypeDecides) {
  TinyCheckpoint quantised = layer(tiny_fp8_dynamic());
  quantised.config()["quantization_config"]["ignore"] = {"m.linear"};
  EXPECT_EQ(read(quantised).quant, tiny_fp8_dynamic());
  TinyCheckpoint plain = layer(tiny_plain());
  plain.config() = quantised.config();
  EXPECT_EQ(read(plain).quant, tiny_plain());
}

TEST_F(LinearRecordTest, ZeroPointsMayBeThereIfTheyAreZero) {
  TinyCheckpoint tiny = layer(tiny_fp8_dynamic());
  tiny.add("m.weight_zero_point", DType::I8, {kN, 1}, std::vector<std::byte>(kN));
  EXPECT_EQ(read(tiny).quant, tiny_fp8_dynamic());
  std::vector<std::byte> points(kN);
  points[17] = std::byte{3};
  tiny.add("m.weight_zero_point", DType::I8, {kN, 1}, std::move(points));
  EXPECT_THAT(refusal(tiny), HasSubstr("\"m.weight_zero_point\" is not zero"));
}

TEST_F(LinearRecordTest, HeadersOnlyRecordsHaveShapesAndNoData) {
  const auto dir = layer(tiny_fp8_static()).write(folder_.path() / "h");
  const Checkpoint checkpoint = Checkpoint::open(dir, true);
  const LinearRecord record = linear_record(checkpoint, "m", kN, kK);
  EXPECT_EQ(record.quant, tiny_fp8_static());
  EXPECT_EQ(record.view.codes.data, nullptr);
  EXPECT_EQ(record.view.codes.shape, (Shape{kN, kK}));
  EXPECT_TRUE(record.view.has_input_scale);
}

}  // namespace
}  // namespace octet
