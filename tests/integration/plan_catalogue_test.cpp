// This test has no OpenCL kernels and the program has: plans of CPUs must not show it.
#include <gmock/gmock.h>

#include "base/mapped_file.h"
#include "model/prepare.h"
#include "plan/explain.h"
#include "tests/integration/process.h"
#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

TEST(PlanCatalogue, KernelsOfOtherDevicesChangeNoByteOfAPlan) {
  for (const LinearKernel* kernel : kernels<LinearKernel>())
    ASSERT_EQ(kernel->device, DeviceKind::Cpu) << kernel->name;
  ASSERT_NE(run_octet({"kernels"}).out.find("opencl.linear."), std::string::npos);
  const TinyFolder folder;
  TinyModel model;
  model.quant = tiny_fp8_block(64, 64);
  const std::string block = tiny_model(model).write(folder.path() / "block").string();
  for (const char* profile : {"profiles/cpu-avx2.json", "profiles/cpu-avx512-bf16.json"}) {
    const DeviceInfo device =
        device_info_from_json(read_text_file(profile, uint64_t{1} << 20), profile);
    for (const std::string& path : {std::string("testing/data/fp8/ct-dynamic"),
                                    std::string("testing/data/fp8/ct-weight-only"),
                                    std::string("testing/data/archs/llama-plain"), block}) {
      const ModelPlan plan = prepare(path, false, device, {}).plan;
      EXPECT_EQ(run_octet({"plan", path, "--device", profile}).out, explain(plan)) << path;
      EXPECT_EQ(run_octet({"plan", path, "--device", profile, "--json"}).out, to_json(plan) + "\n")
          << path;
    }
  }
}

}  // namespace
}  // namespace octet
