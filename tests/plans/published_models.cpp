#include "tests/plans/published_models.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

using nlohmann::json;

struct Dims {
  int64_t hidden, intermediate, layers, heads, kv_heads, head_dim, vocab, positions;
  bool qk_norm;
};
constexpr Dims kQwen{5120, 25600, 64, 64, 8, 128, 151936, 40960, true};
constexpr Dims kLlama{4096, 14336, 32, 32, 8, 128, 128256, 131072, false};

// The tensors of a checkpoint in the order of its shards.
class SparseCheckpoint {
 public:
  void add(const std::string& name, const char* dtype, const std::vector<int64_t>& shape) {
    int64_t bytes = std::strcmp(dtype, "F8_E4M3") == 0 ? 1 : 2;
    for (const int64_t extent : shape) bytes *= extent;
    if (shards_.empty() || shards_.back().bytes + bytes > kShardBytes) shards_.emplace_back();
    Shard& shard = shards_.back();
    shard.header[name] = {
        {"dtype", dtype}, {"shape", shape}, {"data_offsets", {shard.bytes, shard.bytes + bytes}}};
    shard.bytes += bytes;
  }
  // A scale, which a plan reads: 1.
  void add_one(const std::string& name) {
    add(name, "BF16", {1});
    shards_.back().ones.push_back(shards_.back().bytes - 2);
  }

  void write(const std::filesystem::path& dir) const {
    json index{{"metadata", json::object()}, {"weight_map", json::object()}};
    for (size_t i = 0; i < shards_.size(); ++i) {
      const Shard& shard = shards_[i];
      const std::string name =
          fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards_.size());
      std::string header = shard.header.dump();
      header.resize((header.size() + 7) / 8 * 8, ' ');
      const uint64_t length = header.size();
      std::string bytes(sizeof length, '\0');
      std::memcpy(bytes.data(), &length, sizeof length);
      write_bytes(dir / name, bytes + header);
      std::filesystem::resize_file(dir / name,
                                   sizeof length + length + static_cast<uint64_t>(shard.bytes));
      std::fstream file(dir / name, std::ios::in | std::ios::out | std::ios::binary);
      for (const int64_t offset : shard.ones) {
        file.seekp(static_cast<std::streamoff>(sizeof length + length) + offset);
        file.write("\x80\x3f", 2);  // bfloat16 1, low byte first
      }
      for (const auto& [tensor, entry] : shard.header.items()) index["weight_map"][tensor] = name;
    }
    write_bytes(dir / "model.safetensors.index.json", index.dump());
  }

 private:
  struct Shard {
    json header = json::object();
    int64_t bytes = 0;
    std::vector<int64_t> ones;  // offsets
  };
  static constexpr int64_t kShardBytes = 5'000'000'000;
  std::vector<Shard> shards_;
};

void add_linear(SparseCheckpoint& out, const std::string& module, int64_t n, int64_t k,
                Published model) {
  out.add(module + ".weight", "F8_E4M3", {n, k});
  const std::vector<int64_t> blocks{(n + 127) / 128, (k + 127) / 128};
  switch (model) {
    case Published::Qwen3Block:
    case Published::Qwen3BlockWeightOnly:
      out.add(module + ".weight_scale", "BF16", blocks);
      return;
    case Published::Qwen3BlockFp8:
      out.add(module + ".weight_scale_inv", "BF16", blocks);
      return;
    case Published::LlamaChannel:
      out.add(module + ".weight_scale", "BF16", {n, 1});
      return;
    case Published::LlamaTensor:
      out.add_one(module + ".weight_scale");
      out.add_one(module + ".input_scale");
      return;
  }
}

void add_tensors(SparseCheckpoint& out, const Dims& d, Published model) {
  const auto norm = [&](const std::string& name, int64_t width) {
    out.add(name + ".weight", "BF16", {width});
  };
  out.add("model.embed_tokens.weight", "BF16", {d.vocab, d.hidden});
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    const std::string attention = layer + "self_attn.";
    const std::string mlp = layer + "mlp.";
    norm(layer + "input_layernorm", d.hidden);
    norm(layer + "post_attention_layernorm", d.hidden);
    if (d.qk_norm) {
      norm(attention + "q_norm", d.head_dim);
      norm(attention + "k_norm", d.head_dim);
    }
    add_linear(out, attention + "q_proj", d.heads * d.head_dim, d.hidden, model);
    add_linear(out, attention + "k_proj", d.kv_heads * d.head_dim, d.hidden, model);
    add_linear(out, attention + "v_proj", d.kv_heads * d.head_dim, d.hidden, model);
    add_linear(out, attention + "o_proj", d.hidden, d.heads * d.head_dim, model);
    add_linear(out, mlp + "gate_proj", d.intermediate, d.hidden, model);
    add_linear(out, mlp + "up_proj", d.intermediate, d.hidden, model);
    add_linear(out, mlp + "down_proj", d.hidden, d.intermediate, model);
  }
  norm("model.norm", d.hidden);
  out.add("lm_head.weight", "BF16", {d.vocab, d.hidden});
}

json quantization(Published model) {
  if (model == Published::Qwen3BlockFp8) {
    return {{"quant_method", "fp8"},
            {"fmt", "e4m3"},
            {"activation_scheme", "dynamic"},
            {"weight_block_size", {128, 128}},
            {"modules_to_not_convert", {"lm_head"}}};
  }
  json weights{{"num_bits", 8}, {"type", "float"}, {"symmetric", true}, {"dynamic", false}};
  json input{{"num_bits", 8}, {"type", "float"}, {"symmetric", true}, {"dynamic", true}};
  std::string format = "float-quantized";
  if (model == Published::LlamaChannel) {
    weights["strategy"] = "channel";
    input["strategy"] = "token";
  } else if (model == Published::LlamaTensor) {
    weights["strategy"] = input["strategy"] = "tensor";
    input["dynamic"] = false;
  } else {
    weights["strategy"] = "block";
    weights["block_structure"] = {128, 128};
    input["strategy"] = "group";
    input["group_size"] = 128;
    if (model == Published::Qwen3BlockWeightOnly) {
      input = nullptr;
      format = "naive-quantized";
    }
  }
  return {{"quant_method", "compressed-tensors"},
          {"format", format},
          {"quantization_status", "compressed"},
          {"ignore", {"lm_head"}},
          {"kv_cache_scheme", nullptr},
          {"config_groups",
           {{"group_0",
             {{"targets", {"Linear"}},
              {"weights", weights},
              {"input_activations", input},
              {"output_activations", nullptr}}}}}};
}

json config(const Dims& d, Published model) {
  json out{{"architectures", {d.qk_norm ? "Qwen3ForCausalLM" : "LlamaForCausalLM"}},
           {"model_type", d.qk_norm ? "qwen3" : "llama"},
           {"hidden_size", d.hidden},
           {"intermediate_size", d.intermediate},
           {"num_hidden_layers", d.layers},
           {"num_attention_heads", d.heads},
           {"num_key_value_heads", d.kv_heads},
           {"head_dim", d.head_dim},
           {"vocab_size", d.vocab},
           {"max_position_embeddings", d.positions},
           {"rms_norm_eps", 1e-6},
           {"rope_theta", d.qk_norm ? 1000000.0 : 500000.0},
           {"hidden_act", "silu"},
           {"tie_word_embeddings", false},
           {"attention_bias", false},
           {"torch_dtype", "bfloat16"},
           {"quantization_config", quantization(model)}};
  if (!d.qk_norm) {
    out["rope_scaling"] = {{"rope_type", "llama3"},
                           {"factor", 8.0},
                           {"low_freq_factor", 1.0},
                           {"high_freq_factor", 4.0},
                           {"original_max_position_embeddings", 8192}};
  }
  return out;
}

}  // namespace

std::filesystem::path write_published(const std::filesystem::path& dir, Published model) {
  const bool llama = model == Published::LlamaChannel || model == Published::LlamaTensor;
  const Dims& dims = llama ? kLlama : kQwen;
  std::filesystem::create_directories(dir);
  write_bytes(dir / "config.json", config(dims, model).dump());
  SparseCheckpoint checkpoint;
  add_tensors(checkpoint, dims, model);
  checkpoint.write(dir);
  return dir;
}

}  // namespace octet
