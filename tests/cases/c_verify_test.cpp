// Section C of the cases: kernels that compute something else than the checkpoint says.
#include <gmock/gmock.h>

#include "io/checkpoint.h"
#include "io/linear_record.h"
#include "tests/cases/case_model.h"
#include "tests/integration/process.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kScale = "model.layers.0.mlp.gate_proj.weight_scale";

// M0-T with the products of weight and input scale of every layer a power of two.
TinyCheckpoint scaled_checkpoint(float weight_scale, float input_scale) {
  TinyCheckpoint checkpoint = tiny_model(m0_tensor());
  for (int layer = 0; layer < 2; ++layer) {
    for (const char* part : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                             "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
      const std::string module = fmt::format("model.layers.{}.{}", layer, part);
      for (const auto& [name, value] : {std::pair{module + ".weight_scale", weight_scale},
                                        std::pair{module + ".input_scale", input_scale}}) {
        checkpoint.remove(name);
        checkpoint.add_values(name, DType::F32, Shape{1}, std::vector<float>{value});
      }
    }
  }
  return checkpoint;
}

// The kernel must take the scalar of a layer into account: a kernel that left it out would be off
// by a factor of 64 on every output.
TEST(CaseC06, PerTensorLayersKeepTheirScalarOnEveryInstructionSet) {
  TinyFolder folder;
  const std::string dir = (folder.path() / "model").string();
  scaled_checkpoint(0x1p-4F, 0x1p-2F).write(dir);
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    const Ran plan = run_octet({"plan", dir, "--json", "--max-isa", isa});
    ASSERT_EQ(plan.status, 0) << plan.err;
    const json linear = json::parse(plan.out)["linear"];
    for (const json& layers : linear) {
      if (layers["layers"] == "lm_head") continue;
      EXPECT_EQ(layers["weight"], "f8e4m3/tensor/f32/static");
      EXPECT_EQ(layers["input"], "f8e4m3/tensor/f32/static");
    }
    const Ran ran = run_octet({"verify", dir, "--json", "--max-isa", isa});
    EXPECT_EQ(ran.status, 0) << ran.out;
    const json verified = json::parse(ran.out)["linear"];
    for (const json& layers : verified) EXPECT_LT(layers["worst"], 1);
  }
}

TEST(CaseC06, TheScalarChangesTheOutput) {
  TinyFolder folder;
  const std::vector<int32_t> ids = some_ids(6);
  scaled_checkpoint(0x1p-4F, 0x1p-2F).write(folder.path() / "a");
  scaled_checkpoint(0x1p-5F, 0x1p-2F).write(folder.path() / "b");
  EXPECT_NE(our_logprobs(folder.path() / "a", ids), our_logprobs(folder.path() / "b", ids));
}

// gate_proj has N = 384 rows; its scales come in the given number.
std::string refusal_with_scales(const TinyModel& model, int64_t count) {
  TinyFolder folder;
  TinyCheckpoint checkpoint = tiny_model(model);
  checkpoint.remove(kScale);
  checkpoint.add_values(kScale, DType::F32, Shape{count},
                        std::vector<float>(static_cast<size_t>(count), 0.001F));
  const fs::path dir = checkpoint.write(folder.path() / "model");
  const Ran ran = run_octet({"plan", dir.string()});
  EXPECT_EQ(ran.status, 2) << ran.out;
  EXPECT_EQ(run_octet({"inspect", dir.string()}).status, 1);
  return ran.err;
}

TEST(CaseC07, TwoScalesForManyRowsAreRefusedWithBothNumbers) {
  TinyModel fp8 = m0_tensor();
  fp8.dialect = TinyDialect::Fp8;
  EXPECT_THAT(refusal_with_scales(fp8, 2),
              AllOf(HasSubstr(kScale), HasSubstr("[2]"), HasSubstr("expected 1 or 384 values")));
  EXPECT_THAT(refusal_with_scales(m0_tensor(), 2),
              AllOf(HasSubstr(kScale), HasSubstr("[2]"), HasSubstr("expected 1 value")));
  EXPECT_THAT(refusal_with_scales(m0_channel(), 2),
              AllOf(HasSubstr(kScale), HasSubstr("[2]"), HasSubstr("[384, 1] or [384]")));
}

TEST(CaseC13, AKernelThatIsWrongOnThisMachineIsNamedWithItsLayers) {
  TinyFolder folder;
  const std::string dir = (folder.path() / "model").string();
  tiny_model(m0_channel()).write(dir);
  EXPECT_EQ(run_octet({"verify", dir}).status, 0);
  const RunOptions planted{.program = planted_program()};
  const Ran ran = run_octet({"verify", dir}, planted);
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("WRONG: cpu.linear.w8a8.f8.planted model.layers."),
                             HasSubstr("self_attn.q_proj"), HasSubstr("times its bound")));
  const json result = json::parse(run_octet({"verify", dir, "--json"}, planted).out);
  for (const json& layers : result["linear"]) {
    EXPECT_EQ(layers["failure"].is_string(), layers["kernel"] == "cpu.linear.w8a8.f8.planted")
        << layers;
  }
}

}  // namespace
}  // namespace octet
