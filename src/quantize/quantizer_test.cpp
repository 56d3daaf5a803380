#include "quantize/quantizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/linear_record.h"
#include "quantize/weight.h"
#include "testing/broken_files.h"
#include "testing/tiny_checkpoint.h"

namespace octet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr const char* kQ = "model.layers.1.self_attn.q_proj";
constexpr size_t kLinears = 2 * 7 + 1;  // of two layers and the head

TinyModel small(DType dtype = DType::BF16) {
  TinyModel model;
  model.hidden = 64;
  model.intermediate = 160;
  model.heads = 4;
  model.head_dim = 16;
  model.vocab = 80;
  model.dtype = dtype;
  model.quant = tiny_plain(dtype);
  return model;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  return names;
}

class Quantizing : public ::testing::Test {
 protected:
  std::filesystem::path in() const { return folder_.path() / "in"; }
  std::filesystem::path out() const { return folder_.path() / "out"; }

  QuantizeSummary run(std::string_view form, std::vector<float> input_amax = {}) {
    const Checkpoint input = Checkpoint::open(in());
    return quantize({&input, out(), &find_form(form), std::move(input_amax)}, pool_,
                    [this](QuantizeProgress p) { progress_.push_back(p); });
  }
  // The message of the error that run(form) ends with; nothing may be left behind.
  std::string refused(std::string_view form) {
    const std::vector<std::string> before = names_in(folder_.path());
    std::string message = bad_input([&] { run(form); });
    EXPECT_THAT(names_in(folder_.path()), ::testing::UnorderedElementsAreArray(before));
    return message;
  }

  TinyFolder folder_;
  ThreadPool pool_{2};
  std::vector<QuantizeProgress> progress_;
};

TEST_F(Quantizing, EveryFormReadsBackAsItselfWithTheCodesOfQuantizeWeight) {
  tiny_model(small()).write(in());
  const Checkpoint source = Checkpoint::open(in());
  ConstTensorView weight = source.view(*source.find(std::string(kQ) + ".weight"));
  weight.row_stride = 64;
  for (const QuantForm& form : quant_forms()) {
    run(form.name, form.calibrated() ? std::vector<float>(kLinears, 7.0F) : std::vector<float>{});
    const Checkpoint result = Checkpoint::open(out());
    const LinearRecord q = linear_record(result, kQ, 64, 64);
    EXPECT_EQ(q.quant.weight,
              (QuantSpec{DType::F8E4M3, form.weight, DType::BF16, ScaleTiming::Static}))
        << form.name;
    EXPECT_EQ(q.quant.input.has_value(), form.input != QuantForm::Input::None) << form.name;
    EXPECT_EQ(q.view.has_input_scale, form.calibrated()) << form.name;
    if (form.calibrated()) {
      EXPECT_EQ(element(q.view.input_scale, 0), 7.0F / 448);
    }
    const QuantizedWeight want = quantize_weight(weight, form.weight, pool_);
    EXPECT_EQ(std::memcmp(q.view.codes.data, want.codes.data(), want.codes.size()), 0) << form.name;
    EXPECT_EQ(std::memcmp(q.view.scales.data, want.scales.data(), want.scales.size()), 0)
        << form.name;
    std::filesystem::remove_all(out());
  }
}

TEST_F(Quantizing, LeavesHeadEmbeddingAndNormsAsTheyAre) {
  for (DType dtype : {DType::BF16, DType::F16, DType::F32}) {
    tiny_model(small(dtype)).write(in());
    const QuantizeSummary summary = run("fp8-dynamic");
    const Checkpoint source = Checkpoint::open(in());
    const Checkpoint result = Checkpoint::open(out());
    EXPECT_EQ(summary.quantised, 14);
    EXPECT_EQ(summary.copied, 2 + 2 * 2 + 1);  // embedding and head, norms
    EXPECT_EQ(result.tensors().size(), static_cast<size_t>(2 * summary.quantised + summary.copied));
    for (const char* name : {"lm_head.weight", "model.embed_tokens.weight", "model.norm.weight",
                             "model.layers.0.input_layernorm.weight"}) {
      const TensorEntry& a = *source.find(name);
      const TensorEntry& b = *result.find(name);
      EXPECT_EQ(b.dtype, dtype) << name;
      ASSERT_EQ(a.bytes, b.bytes) << name;
      EXPECT_EQ(std::memcmp(source.view(a).data, result.view(b).data, a.bytes), 0) << name;
    }
    EXPECT_EQ(result.find(std::string(kQ) + ".weight_scale")->dtype, dtype);
    std::filesystem::remove_all(in());
    std::filesystem::remove_all(out());
  }
}

TEST_F(Quantizing, KeepsTheShardsAndWritesTheirIndex) {
  tiny_model(small()).write(in(), 3);
  run("fp8-block");
  EXPECT_THAT(names_in(out()), UnorderedElementsAre("config.json", "model.safetensors.index.json",
                                                    "model-00001-of-00003.safetensors",
                                                    "model-00002-of-00003.safetensors",
                                                    "model-00003-of-00003.safetensors"));
  const Checkpoint source = Checkpoint::open(in());
  const Checkpoint result = Checkpoint::open(out());
  const TensorEntry& before = *source.find(std::string(kQ) + ".weight");
  EXPECT_EQ(result.find(std::string(kQ) + ".weight")->shard, before.shard);
  EXPECT_EQ(result.find(std::string(kQ) + ".weight_scale")->shard, before.shard);
}

TEST_F(Quantizing, CopiesWhatBelongsToTheModelAndNoOtherWeights) {
  tiny_model(small()).write(in());
  for (const char* name : {"tokenizer.json", "chat_template.jinja", "LICENSE", "pytorch_model.bin",
                           "old.pt", "model.gguf", "pytorch_model.bin.index.json"}) {
    write_bytes(in() / name, name);
  }
  run("fp8-weight-only");
  EXPECT_THAT(names_in(out()), UnorderedElementsAre("config.json", "model.safetensors", "LICENSE",
                                                    "tokenizer.json", "chat_template.jinja"));
}

TEST_F(Quantizing, CountsTheBytesOfTheInputUpToItsWholeSize) {
  tiny_model(small()).write(in(), 2);
  const QuantizeSummary summary = run("fp8-dynamic");
  const Checkpoint source = Checkpoint::open(in());
  uint64_t tensors = 0;
  for (const TensorEntry& entry : source.tensors()) tensors += entry.bytes;
  ASSERT_EQ(progress_.size(), source.tensors().size());
  EXPECT_TRUE(std::is_sorted(progress_.begin(), progress_.end(), [](const auto& a, const auto& b) {
    return a.bytes_done < b.bytes_done;
  }));
  EXPECT_EQ(progress_.back().bytes_done, tensors);
  EXPECT_EQ(progress_.back().bytes_total, summary.bytes_in);
  EXPECT_LE(progress_.back().bytes_done, progress_.back().bytes_total);
  EXPECT_LT(summary.bytes_out, summary.bytes_in);
  EXPECT_EQ(summary.bytes_out, Checkpoint::open(out()).file_bytes());
}

TEST_F(Quantizing, RefusesWhatIsQuantisedAlready) {
  TinyModel model = small();
  model.quant = tiny_fp8_dynamic();
  tiny_model(model).write(in());
  EXPECT_THAT(refused("fp8-dynamic"),
              AllOf(HasSubstr("already quantised"), HasSubstr("compressed-tensors")));
}

TEST_F(Quantizing, RefusesAFolderThatHoldsSomething) {
  tiny_model(small()).write(in());
  std::filesystem::create_directory(out());
  write_bytes(out() / "mine.txt", "mine");
  EXPECT_THAT(refused("fp8-dynamic"), HasSubstr("out"));
  EXPECT_THAT(names_in(out()), UnorderedElementsAre("mine.txt"));
}

TEST_F(Quantizing, RefusesValuesThatAreNotFiniteByTensorAndElement) {
  for (const float poison :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    TinyCheckpoint checkpoint = tiny_model(small());
    std::vector<float> values(64 * 64, 0.5F);
    values[77] = poison;
    const std::string name = std::string(kQ) + ".weight";
    checkpoint.remove(name);
    checkpoint.add_values(name, DType::BF16, Shape{64, 64}, values);
    checkpoint.write(in());
    EXPECT_THAT(refused("fp8-dynamic"), AllOf(HasSubstr(name), HasSubstr("element 77")));
  }
}

TEST_F(Quantizing, RefusesAnUnknownArchitectureBeforeAnythingIsWritten) {
  TinyModel model = small();
  model.architecture = "NoSuchForCausalLM";
  tiny_model(model).write(in());
  EXPECT_THROW(run("fp8-dynamic"), Error);
  EXPECT_FALSE(std::filesystem::exists(out()));
}

TEST_F(Quantizing, RefusesACheckpointWithoutOneOfItsWeights) {
  TinyCheckpoint checkpoint = tiny_model(small());
  checkpoint.remove(std::string(kQ) + ".weight");
  checkpoint.write(in());
  EXPECT_THAT(refused("fp8-dynamic"), HasSubstr(kQ));
}

TEST_F(Quantizing, MissingCalibrationIsABug) {
  tiny_model(small()).write(in());
  try {
    run("fp8-static", std::vector<float>(kLinears - 1, 1.0F));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::Bug);
  }
  EXPECT_FALSE(std::filesystem::exists(out()));
}

}  // namespace
}  // namespace octet
