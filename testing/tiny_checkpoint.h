#pragma once
// Writes tiny checkpoints for tests: any QuantSpec, either dialect, one file or several, with the
// values that the stored codes and scales stand for.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/split_mix.h"
#include "num/quant_spec.h"
#include "num/tensor.h"

namespace octet {

enum class TinyDialect : uint8_t { CompressedTensors, Fp8 };

// Seeded numbers that are the same with every compiler and library.
class TinyRandom {
 public:
  explicit TinyRandom(uint64_t seed) : source_(seed) {}
  uint64_t bits() { return source_.bits(); }
  float uniform();  // [0, 1)
  float normal();   // mean 0, deviation 1, between -3.5 and 3.5

 private:
  SplitMix64 source_;
};

// Words of the common schemes.
LayerQuant tiny_plain(DType dtype = DType::BF16);
LayerQuant tiny_fp8_static(DType scale_dtype = DType::BF16);     // tensor, static tensor
LayerQuant tiny_fp8_dynamic(DType scale_dtype = DType::BF16);    // channel, dynamic token
LayerQuant tiny_fp8_block(Extent rows = 128, Extent cols = 128,  // block, dynamic group `cols`
                          DType scale_dtype = DType::BF16);
LayerQuant tiny_fp8_weight_only(ScaleTile tile = ScaleTile::row(), DType scale_dtype = DType::BF16);
LayerQuant tiny_mxfp8();  // group 32 with E8M0, weights and inputs

// A checkpoint in memory. Add tensors, spoil them if the test is about that, write it.
class TinyCheckpoint {
 public:
  explicit TinyCheckpoint(uint64_t seed = 1);
  TinyCheckpoint(TinyCheckpoint&&) noexcept;
  TinyCheckpoint& operator=(TinyCheckpoint&&) noexcept;
  ~TinyCheckpoint();

  // config.json; starts as {}.
  nlohmann::json& config();
  TinyRandom& random() { return random_; }

  // A tensor as given, or of `values` rounded to a float `dtype`.
  void add(const std::string& name, DType dtype, Shape shape, std::vector<std::byte> bytes);
  void add_values(const std::string& name, DType dtype, Shape shape, std::span<const float> values);
  // mean + deviation * normal numbers.
  void add_normal(const std::string& name, DType dtype, Shape shape, float deviation,
                  float mean = 0);
  // `module`.weight of normal numbers with deviation 1/sqrt(k), quantised as `quant` says, with
  // .weight_scale, .input_scale and .bias where they belong. Scales are the largest magnitude of a
  // tile over the largest code, rounded to their dtype; E8M0 as MX writes it.
  void add_linear(const std::string& module, int64_t n, int64_t k, const LayerQuant& quant,
                  bool bias = false);
  void remove(const std::string& name);
  void rename(const std::string& from, const std::string& to);
  // Puts the weights of `modules`, and their scales, one below the other under `into`: scales per
  // row as rows, scales per tensor as a list. Of static inputs the first scale stays.
  void join(std::span<const std::string> modules, const std::string& into);
  // Moves every tensor whose name begins with `from` to `to` with the same rest.
  void move_all(const std::string& from, const std::string& to);

  std::vector<std::string> names() const;
  // What tensor `name` means: decoded codes times scales for 8-bit weights. Row-major, exact.
  const std::vector<double>& values(const std::string& name) const;

  // Sets config()["quantization_config"] for the linears added so far, and renames block scales to
  // weight_scale_inv for Fp8. The first scheme used gets the class target; other schemes exact
  // names; plain linears go to the ignore list. Fp8 takes one scheme only.
  void quantise_config(TinyDialect dialect = TinyDialect::CompressedTensors);

  // Writes config.json and the tensors into `dir`, which is made if needed, in `shards` files (with
  // an index when there are several). Returns `dir`.
  std::filesystem::path write(const std::filesystem::path& dir, int shards = 1) const;

 private:
  struct Tensor {
    DType dtype = DType::F32;
    Shape shape;
    std::vector<std::byte> bytes;
    std::vector<double> values;
  };
  struct Linear {
    std::string module;
    LayerQuant quant;
  };
  void write_shard(const std::filesystem::path& path, std::span<const std::string> names) const;

  TinyRandom random_;
  std::unique_ptr<nlohmann::json> config_;
  std::map<std::string, Tensor> tensors_;
  std::vector<Linear> linears_;
};

// A decoder of the Llama family. The defaults are model M0 of the test log: q [256, 256], k and v
// [128, 256], o [256, 256], gate and up [384, 256], down [256, 384], embedding and head [512, 256].
struct TinyModel {
  std::string architecture = "LlamaForCausalLM";
  std::string model_type = "llama";
  int64_t hidden = 256;
  int64_t intermediate = 384;
  int64_t layers = 2;
  int64_t heads = 4;
  int64_t kv_heads = 2;
  int64_t head_dim = 64;
  int64_t vocab = 512;
  int64_t max_positions = 256;
  bool tied = false;
  bool qkv_bias = false;
  bool qk_norm = false;
  DType dtype = DType::BF16;        // of embedding, norms, head and biases
  LayerQuant quant = tiny_plain();  // of every linear layer but the head
  // Overrides `quant` for one module, the head included; null or nothing: no override.
  std::function<std::optional<LayerQuant>(std::string_view module)> quant_of = nullptr;
  TinyDialect dialect = TinyDialect::CompressedTensors;
  uint64_t seed = 1;
};

// A decoder a quarter as wide, for tests that run many steps: q and o [64, 64], k and v [32, 64],
// gate and up [96, 64], down [64, 96].
TinyModel small_tiny_model(LayerQuant quant = tiny_fp8_dynamic(), int64_t vocab = 400,
                           int64_t max_positions = 256);

// The checkpoint of `model` with its config.json. Change it before writing if the test asks.
TinyCheckpoint tiny_model(const TinyModel& model);

// A folder for one test, empty, removed with its content at the end.
class TinyFolder {
 public:
  TinyFolder();
  TinyFolder(const TinyFolder&) = delete;
  TinyFolder& operator=(const TinyFolder&) = delete;
  ~TinyFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace octet
