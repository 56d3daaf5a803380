#include "tests/cases/script_model.h"

#include "base/error.h"
#include "device/device.h"
#include "testing/tiny_checkpoint.h"
#include "tests/integration/rig.h"

namespace octet {
namespace {

// A byte as a byte-level vocabulary writes it (GPT-2's table).
std::string coded(std::string_view bytes) {
  std::string text;
  const auto put = [&](int character) {
    if (character < 0x80) return text.push_back(static_cast<char>(character));
    text.push_back(static_cast<char>(0xC0 | character >> 6));
    text.push_back(static_cast<char>(0x80 | (character & 0x3F)));
  };
  for (const char c : bytes) {
    const int byte = static_cast<uint8_t>(c);
    const auto printable = [](int b) {
      return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    };
    int other = 0x100;
    for (int b = 0; b < byte; ++b) other += printable(b) ? 0 : 1;
    put(printable(byte) ? byte : other);
  }
  return text;
}

}  // namespace

void write_script_model(const std::filesystem::path& dir, std::span<const int32_t> script,
                        int64_t vocab) {
  TinyModel model;
  model.hidden = vocab;
  model.vocab = vocab;
  model.intermediate = 64;
  model.layers = 1;
  model.heads = 2;
  model.kv_heads = 1;
  model.head_dim = 64;
  TinyCheckpoint checkpoint = tiny_model(model);
  checkpoint.config().erase("eos_token_id");
  const auto replace = [&](const std::string& name, Shape shape, const std::vector<float>& values) {
    checkpoint.remove(name);
    checkpoint.add_values(name, DType::BF16, shape, values);
  };
  const auto square = static_cast<size_t>(vocab * vocab);
  const auto at = [&](int64_t row, int64_t column) {
    return static_cast<size_t>(row * vocab + column);
  };
  std::vector<float> embedding(square), head(square);
  for (int64_t id = 0; id < vocab; ++id) embedding[at(id, id)] = 1;
  for (size_t i = 0; i + 1 < script.size(); ++i) head[at(script[i + 1], script[i])] = 1;
  replace("model.embed_tokens.weight", {vocab, vocab}, embedding);
  replace("lm_head.weight", {vocab, vocab}, head);
  const std::string layer = "model.layers.0.";
  replace(layer + "self_attn.o_proj.weight", {vocab, 128},
          std::vector<float>(static_cast<size_t>(vocab * 128)));
  replace(layer + "mlp.down_proj.weight", {vocab, 64},
          std::vector<float>(static_cast<size_t>(vocab * 64)));
  for (const std::string& norm :
       {layer + "input_layernorm.weight", layer + "post_attention_layernorm.weight",
        std::string("model.norm.weight")}) {
    replace(norm, {vocab}, std::vector<float>(static_cast<size_t>(vocab), 1));
  }
  checkpoint.write(dir);
}

nlohmann::json script_tokenizer(const std::vector<std::string>& pieces,
                                const std::vector<std::string>& special) {
  nlohmann::json vocab = nlohmann::json::object();
  for (int byte = 0; byte < 256; ++byte)
    vocab[coded(std::string(1, static_cast<char>(byte)))] = byte;
  int id = 256;
  for (const std::string& piece : pieces) {
    OCTET_CHECK(!vocab.contains(coded(piece)), "the piece {} is there already", piece);
    vocab[coded(piece)] = id++;
  }
  nlohmann::json added = nlohmann::json::array();
  for (const std::string& token : special)
    added.push_back({{"id", id++}, {"content", token}, {"special", true}, {"normalized", false}});
  return {{"added_tokens", added},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", nlohmann::json::array()}}}};
}

Told tell(const std::filesystem::path& dir, const Tokenizer& tokenizer, int32_t first,
          int64_t max_tokens, std::vector<std::string> stops,
          const std::function<void(Request&)>& change) {
  const DeviceInfo info = here();
  const auto device = make_cpu_device(info, info.threads);
  Engine engine(prepare(dir, false, info, exact_options()), *device);
  Request request;
  request.prompt = {first};
  request.max_tokens = max_tokens;
  if (change) change(request);
  Told told;
  told.answer = answer(
      engine, &tokenizer, std::move(request), std::move(stops),
      [&](std::string_view text) { told.deltas.emplace_back(text); }, nullptr);
  return told;
}

}  // namespace octet
