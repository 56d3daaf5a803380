#include "tests/integration/tiny_models.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace octet {
namespace {

constexpr int64_t kEndToken = 2;
constexpr const char* kTemplate =
    "{%- for m in messages -%}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' "
    "}}{%- endfor -%}{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}";

}  // namespace

TinyModel small_model(LayerQuant quant) {
  return small_tiny_model(quant, 400, 4096);
}

TinyCheckpoint endless_checkpoint(const TinyModel& model) {
  TinyCheckpoint checkpoint = tiny_model(model);
  const std::vector<double>& head = checkpoint.values("lm_head.weight");
  std::vector<float> values(head.begin(), head.end());
  const auto row = values.begin() + kEndToken * model.hidden;
  std::fill(row, row + model.hidden, 0.0F);  // its logit is 0, that of the best token well above
  checkpoint.remove("lm_head.weight");
  checkpoint.add_values("lm_head.weight", model.dtype, {model.vocab, model.hidden}, values);
  return checkpoint;
}

void add_text_files(const std::filesystem::path& dir) {
  std::filesystem::copy_file("testing/data/tokenizers/smollm2/tokenizer.json",
                             dir / "tokenizer.json");
  write_bytes(dir / "tokenizer_config.json", R"({"eos_token": "<|im_end|>"})");
  write_bytes(dir / "chat_template.jinja", kTemplate);
}

std::filesystem::path write_small_model(const std::filesystem::path& dir, LayerQuant quant) {
  endless_checkpoint(small_model(quant)).write(dir);
  add_text_files(dir);
  return dir;
}

std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

nlohmann::json read_json(const std::filesystem::path& path) {
  return nlohmann::json::parse(read_bytes(path));
}

void cut_after_header(const std::filesystem::path& path) {
  uint64_t header = 0;
  const std::string bytes = read_bytes(path);
  std::memcpy(&header, bytes.data(), sizeof header);
  std::filesystem::resize_file(path, sizeof header + header);
}

}  // namespace octet
