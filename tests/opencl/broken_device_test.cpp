// The program on devices that fail while it runs: a simulator that can be broken
// (oclgrind_loader.cpp). It says so and never answers from another device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/integration/process.h"
#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class BrokenDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(OCTET_OCLGRIND_LOADER "/libOpenCL.so.1"))
      GTEST_FAIL() << "Oclgrind is missing: apt-get install oclgrind, then configure again";
    TinyModel model = small_model();
    model.layers = 1;
    endless_checkpoint(model).write(folder_.path());
    add_text_files(folder_.path());
  }

  // The program with a loader that does what `variable` says.
  Ran run(const char* variable, const char* value) {
    setenv("LD_LIBRARY_PATH", OCTET_OCLGRIND_LOADER, 1);
    setenv("XDG_CACHE_HOME", (folder_.path() / "cache").c_str(), 1);
    if (value != nullptr) setenv(variable, value, 1);
    const Ran ran = run_octet({"run", folder_.path(), "-p", "a b", "-n", "2", "--device",
                               "opencl:0", "--max-model-len", "64"});
    unsetenv(variable);
    unsetenv("LD_LIBRARY_PATH");
    unsetenv("XDG_CACHE_HOME");
    return ran;
  }

  TinyFolder folder_;
};

TEST_F(BrokenDevice, AnswersWhileItIsWhole) {
  const Ran ran = run("OCTET_LOADER_LAUNCHES", nullptr);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_FALSE(ran.out.empty());
}

TEST_F(BrokenDevice, ThatIsLostEndsTheRunWithStatus4) {
  const std::string whole = run("OCTET_LOADER_LAUNCHES", nullptr).out;
  // While the weights are laid out, and in the middle of the answer.
  for (const char* launches : {"3", "25"}) {
    const Ran ran = run("OCTET_LOADER_LAUNCHES", launches);
    EXPECT_EQ(ran.status, 4) << launches << ran.err;
    EXPECT_THAT(ran.err, AllOf(HasSubstr("CL_DEVICE_NOT_AVAILABLE"), HasSubstr("octet probe"),
                               HasSubstr("--device cpu")))
        << launches;
    EXPECT_LT(ran.out.size(), whole.size()) << launches;
    EXPECT_EQ(ran.out, whole.substr(0, ran.out.size())) << launches;
  }
}

TEST_F(BrokenDevice, WithoutMemoryEndsTheRunWithStatus3) {
  const Ran ran = run("OCTET_LOADER_BYTES", "100000");
  EXPECT_EQ(ran.status, 3) << ran.err;
  EXPECT_THAT(ran.err, AllOf(HasSubstr("no memory for"), HasSubstr("Oclgrind"),
                             HasSubstr("--max-model-len")));
  EXPECT_EQ(ran.out, "");
}

}  // namespace
}  // namespace octet
