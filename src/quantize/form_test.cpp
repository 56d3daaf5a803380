#include "quantize/form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "io/quant_config.h"

namespace octet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What a reader makes of the config that a form writes.
QuantConfig read_back(const QuantForm& form) {
  const nlohmann::json config{
      {"quantization_config", nlohmann::json::parse(quantization_config(form))}};
  return QuantConfig::parse(config);
}

TEST(QuantForm, IsFoundByItsName) {
  std::set<std::string_view> names;
  for (const QuantForm& form : quant_forms()) {
    EXPECT_EQ(&find_form(form.name), &form);
    names.insert(form.name);
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"fp8-dynamic", "fp8-block", "fp8-static",
                                               "fp8-weight-only"}));
}

TEST(QuantForm, RefusesAnotherNameWithTheListOfForms) {
  for (const char* name : {"fp4", "", "FP8-DYNAMIC", "fp8-dynamic "}) {
    try {
      find_form(name);
      FAIL() << name;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::BadInput);
      EXPECT_THAT(e.message(), HasSubstr(fmt::format("--scheme {}: no such scheme", name)));
      for (const QuantForm& form : quant_forms())
        EXPECT_THAT(e.hint(), HasSubstr(std::string(form.name)));
    }
  }
}

TEST(QuantForm, OnlyStaticInputScalesNeedACalibrationText) {
  for (const QuantForm& form : quant_forms()) {
    EXPECT_EQ(form.calibrated(), form.name == "fp8-static") << form.name;
  }
}

TEST(QuantForm, ConfigReadsBackAsTheFormItWasWrittenFor) {
  const auto input_of = [](std::string_view name) {
    return read_back(find_form(name)).match("model.layers.0.mlp.up_proj")->input;
  };
  for (const QuantForm& form : quant_forms()) {
    const QuantConfig config = read_back(form);
    EXPECT_THAT(config.notes(), IsEmpty()) << form.name;
    EXPECT_EQ(config.method(), "compressed-tensors");
    const auto quant = config.match("model.layers.0.mlp.up_proj");
    ASSERT_TRUE(quant.has_value()) << form.name;
    EXPECT_EQ(quant->weight.dtype, DType::F8E4M3);
    EXPECT_EQ(quant->weight.tile, form.weight) << form.name;
    EXPECT_EQ(quant->weight.timing, ScaleTiming::Static);
    EXPECT_FALSE(quant->per_token_for_tensor);
    EXPECT_FALSE(config.match("lm_head").has_value()) << form.name;
    EXPECT_FALSE(config.kv_cache().has_value());
  }
  EXPECT_EQ(input_of("fp8-weight-only"), std::nullopt);
  EXPECT_EQ(input_of("fp8-dynamic"),
            (QuantSpec{DType::F8E4M3, ScaleTile::row(), DType::F32, ScaleTiming::Dynamic}));
  EXPECT_EQ(input_of("fp8-block"),
            (QuantSpec{DType::F8E4M3, ScaleTile::group(128), DType::F32, ScaleTiming::Dynamic}));
  EXPECT_EQ(input_of("fp8-static"),
            (QuantSpec{DType::F8E4M3, ScaleTile::tensor(), DType::F32, ScaleTiming::Static}));
}

TEST(QuantForm, ConfigNamesTheFormatThatReadersExpect) {
  for (const QuantForm& form : quant_forms()) {
    const auto json = nlohmann::json::parse(quantization_config(form));
    const char* format =
        form.input == QuantForm::Input::None ? "naive-quantized" : "float-quantized";
    EXPECT_EQ(json["format"], format) << form.name;
    EXPECT_EQ(json["quantization_status"], "compressed");
    const auto& group = json["config_groups"][std::string(form.group)];
    EXPECT_EQ(group["format"], format) << form.name;
    EXPECT_EQ(group["input_activations"].is_null(), form.input == QuantForm::Input::None);
  }
}

}  // namespace
}  // namespace octet
