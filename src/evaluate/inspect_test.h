#pragma once
// A tiny checkpoint in a folder of its own, and what inspect() finds in it. For tests.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "evaluate/inspect.h"
#include "testing/tiny_checkpoint.h"

namespace octet {

inline constexpr const char* kQ = "model.layers.1.self_attn.q_proj";
inline const std::string kQWeight = std::string(kQ) + ".weight";
inline const std::string kQScale = std::string(kQ) + ".weight_scale";

inline TinyModel small(LayerQuant quant = tiny_fp8_dynamic()) {
  return small_tiny_model(quant);
}

// Codes of q_proj of layer 1 with one of them replaced, or all of them small.
inline TinyCheckpoint with_codes(DType dtype, const std::function<std::byte(size_t)>& code) {
  TinyCheckpoint checkpoint = tiny_model(small());
  std::vector<std::byte> codes(64 * 64);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = code(i);
  checkpoint.remove(kQWeight);
  checkpoint.add(kQWeight, dtype, Shape{64, 64}, codes);
  return checkpoint;
}
inline TinyCheckpoint with_codes(DType dtype, uint8_t code) {
  return with_codes(dtype, [code](size_t) { return std::byte{code}; });
}

class InspectTest : public ::testing::Test {
 protected:
  std::filesystem::path model() const { return folder_.path() / "model"; }
  std::filesystem::path file(const char* name) const { return model() / name; }

  static void write_text(const std::filesystem::path& path, std::string_view text) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << text;
    ASSERT_TRUE(out.flush());
  }

  void write(const TinyCheckpoint& checkpoint, int shards = 1) const {
    checkpoint.write(model(), shards);
    std::filesystem::copy_file("testing/data/tokenizers/smollm2/tokenizer.json",
                               file("tokenizer.json"),
                               std::filesystem::copy_options::overwrite_existing);
    write_text(file("tokenizer_config.json"), R"({"eos_token": "<|im_end|>"})");
    write_text(file("chat_template.jinja"), "{{ '<|im_start|>' + messages[0]['content'] }}");
  }

  Inspection inspected() const {
    ThreadPool pool(2);
    return inspect(model(), pool, nullptr);
  }

  // "rule subject" of every error and warning.
  static std::vector<std::string> faults(const Inspection& inspection) {
    std::vector<std::string> out;
    for (const Finding& f : inspection.findings) {
      if (f.rule->severity != Severity::Note)
        out.push_back(fmt::format("{} {}", f.rule->id, f.subject));
    }
    return out;
  }
  std::vector<std::string> faults() const { return faults(inspected()); }

  // The one finding of `rule`.
  Finding only(std::string_view rule) const {
    const Inspection inspection = inspected();
    std::vector<Finding> found;
    for (const Finding& f : inspection.findings) {
      if (f.rule->id == rule) found.push_back(f);
    }
    EXPECT_EQ(found.size(), 1U) << rule << "\n" << explain(inspection);
    return found.empty() ? Finding{} : found.front();
  }

  // Replaces the scales of q_proj of layer 1.
  static TinyCheckpoint with_scales(std::vector<float> values, DType dtype = DType::F32) {
    TinyCheckpoint checkpoint = tiny_model(small());
    checkpoint.remove(kQScale);
    checkpoint.add_values(kQScale, dtype, Shape{static_cast<int64_t>(values.size()), 1}, values);
    return checkpoint;
  }
  static std::vector<float> scales(float one, size_t at = 3) {
    std::vector<float> values(64, 0.001F);
    values[at] = one;
    return values;
  }

  TinyFolder folder_;
};

}  // namespace octet
