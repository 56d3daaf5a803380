#pragma once
// A model in a folder of its own to be broken, and how the program ends with it. For tests.
#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/integration/process.h"
#include "tests/integration/tiny_models.h"

namespace octet {

inline constexpr const char* kQ = "model.layers.1.self_attn.q_proj";

class BadInput : public ::testing::Test {
 protected:
  std::filesystem::path model() const { return folder_.path() / "model"; }
  std::filesystem::path weights() const { return model() / "model.safetensors"; }

  void write(const TinyCheckpoint& checkpoint, int shards = 1) const {
    checkpoint.write(model(), shards);
    add_text_files(model());
  }
  static TinyCheckpoint sound(LayerQuant quant = tiny_fp8_dynamic()) {
    return tiny_model(small_model(quant));
  }

  // Runs and expects one error message: "octet: ..." once, with its hint, and nothing else.
  static Ran fails(const std::vector<std::string>& words, int status,
                   const RunOptions& options = {}) {
    Ran ran = run_octet(words, options);
    EXPECT_EQ(ran.status, status) << describe_run(words, ran);
    EXPECT_THAT(ran.err, ::testing::StartsWith("octet: "));
    EXPECT_EQ(ran.err.find("octet: ", 1), std::string::npos) << describe_run(words, ran);
    EXPECT_THAT(ran.err, ::testing::Not(::testing::HasSubstr("bug of octet")));
    EXPECT_THAT(ran.err, ::testing::AnyOf(::testing::HasSubstr("\n  hint: "),
                                          ::testing::HasSubstr("\n  try: ")))
        << describe_run(words, ran);
    return ran;
  }
  // The same for plan and run of the model; returns what plan said.
  std::string both_fail(int status) const {
    fails({"run", model().string(), "-p", "bread", "-n", "2"}, status);
    return fails({"plan", model().string()}, status).err;
  }

  TinyFolder folder_;
};

}  // namespace octet
