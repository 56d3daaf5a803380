#include "testing/tiny_checkpoint.h"

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "io/safetensors_writer.h"
#include "num/bf16.h"
#include "num/f8.h"

namespace octet {
namespace {

// One stored element of a float type.
void store(DType dtype, float value, std::byte* at) {
  switch (dtype) {
    case DType::F32:
      std::memcpy(at, &value, sizeof value);
      return;
    case DType::BF16:
    case DType::F16: {
      const uint16_t bits = dtype == DType::BF16 ? f32_to_bf16(value) : f32_to_f16(value);
      std::memcpy(at, &bits, sizeof bits);
      return;
    }
    case DType::F8E4M3:
    case DType::F8E5M2:
      *at = std::byte{f32_to_f8(dtype, value)};
      return;
    case DType::F8E8M0:
      *at = std::byte(127 + std::ilogb(value));  // powers of two only
      return;
    case DType::I64:
    case DType::I32:
    case DType::I16:
    case DType::I8:
    case DType::U8:
    case DType::Bool:
      break;
  }
  OCTET_CHECK(false, "{} is not a float type", name(dtype));
}

float load(DType dtype, const std::byte* at) {
  return element(ConstTensorView{at, dtype, Shape{1}, 0}, 0);
}

std::vector<std::byte> encode(DType dtype, std::span<const float> values) {
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(bytes_of(dtype)));
  for (size_t i = 0; i < values.size(); ++i) {
    store(dtype, values[i], bytes.data() + i * static_cast<size_t>(bytes_of(dtype)));
  }
  return bytes;
}

// The scale of a tile, as it is stored.
float tile_scale(float amax, const QuantSpec& spec) {
  if (amax == 0) return 1;
  if (spec.scale_dtype == DType::F8E8M0) {
    // MX (OCP Microscaling v1.0, 6.3): the exponent of amax less that of the largest code.
    return std::ldexp(1.0F, std::ilogb(amax) - std::ilogb(info(spec.dtype).max_finite));
  }
  std::byte bytes[4];
  store(spec.scale_dtype, amax / static_cast<float>(info(spec.dtype).max_finite), bytes);
  return load(spec.scale_dtype, bytes);
}

struct Quantised {
  std::vector<std::byte> codes;
  std::vector<float> scales;  // [tile_rows(n), tile_cols(k)]
  std::vector<double> values;
};

Quantised quantise(std::span<const float> weights, int64_t n, int64_t k, const QuantSpec& spec) {
  const int64_t cols = spec.tile.tile_cols(k);
  Quantised out;
  out.scales.resize(static_cast<size_t>(spec.tile.tile_rows(n) * cols));
  const auto tile_of = [&](int64_t r, int64_t c) {
    return static_cast<size_t>(spec.tile.tile_row(r) * cols + spec.tile.tile_col(c));
  };
  for (int64_t i = 0; i < n * k; ++i) {
    float& amax = out.scales[tile_of(i / k, i % k)];
    amax = std::max(amax, std::fabs(weights[static_cast<size_t>(i)]));
  }
  for (float& scale : out.scales) scale = tile_scale(scale, spec);
  out.codes.resize(weights.size());
  out.values.resize(weights.size());
  for (int64_t i = 0; i < n * k; ++i) {
    const auto at = static_cast<size_t>(i);
    const float scale = out.scales[tile_of(i / k, i % k)];
    store(spec.dtype, weights[at] / scale, &out.codes[at]);
    out.values[at] = static_cast<double>(load(spec.dtype, &out.codes[at])) * scale;
  }
  return out;
}

// Shape of a scale tensor as llm-compressor writes it.
Shape scale_shape(const ScaleTile& tile, int64_t n, int64_t k) {
  if (tile.granularity() == Granularity::Tensor) return Shape{1};
  return Shape{tile.tile_rows(n), tile.tile_cols(k)};
}

nlohmann::json args_of(const QuantSpec& spec, bool input) {
  nlohmann::json args{{"num_bits", 8},
                      {"type", "float"},
                      {"symmetric", true},
                      {"dynamic", spec.timing == ScaleTiming::Dynamic}};
  switch (spec.tile.granularity()) {
    case Granularity::Tensor:
      args["strategy"] = "tensor";
      break;
    case Granularity::Row:
      args["strategy"] = input ? "token" : "channel";
      break;
    case Granularity::Group:
      args["strategy"] = "group";
      args["group_size"] = spec.tile.cols;
      break;
    case Granularity::Block:
      args["strategy"] = "block";
      args["block_structure"] = {spec.tile.rows, spec.tile.cols};
      break;
  }
  if (spec.scale_dtype == DType::F8E8M0) args["scale_dtype"] = "torch.uint8";
  return args;
}

nlohmann::json group_of(const LayerQuant& quant) {
  nlohmann::json group{{"targets", nlohmann::json::array()},
                       {"weights", args_of(quant.weight, false)},
                       {"input_activations", nullptr},
                       {"output_activations", nullptr}};
  if (quant.input) group["input_activations"] = args_of(*quant.input, true);
  if (quant.per_token_for_tensor) group["input_activations"]["strategy"] = "tensor";
  return group;
}

LayerQuant fp8(ScaleTile weight, DType scale_dtype) {
  return {{DType::F8E4M3, weight, scale_dtype, ScaleTiming::Static}, std::nullopt, false};
}

LayerQuant with_input(LayerQuant quant, ScaleTile tile, ScaleTiming timing) {
  quant.input = QuantSpec{DType::F8E4M3, tile, DType::F32, timing};
  return quant;
}

}  // namespace

float TinyRandom::uniform() {
  return static_cast<float>(bits() >> 40) * 0x1p-24F;
}

float TinyRandom::normal() {
  // Four uniform numbers of 16 bits have variance 1/3; no library function, so every platform
  // agrees.
  const uint64_t u = bits();
  const uint64_t sum = (u & 0xFFFF) + (u >> 16 & 0xFFFF) + (u >> 32 & 0xFFFF) + (u >> 48);
  constexpr float kRoot3 = 1.7320508F;
  return (static_cast<float>(sum) * 0x1p-16F - 2 + 0x1p-15F) * kRoot3;
}

LayerQuant tiny_plain(DType dtype) {
  LayerQuant quant;
  quant.weight.dtype = dtype;
  return quant;
}

LayerQuant tiny_fp8_static(DType scale_dtype) {
  return with_input(fp8(ScaleTile::tensor(), scale_dtype), ScaleTile::tensor(),
                    ScaleTiming::Static);
}

LayerQuant tiny_fp8_dynamic(DType scale_dtype) {
  return with_input(fp8(ScaleTile::row(), scale_dtype), ScaleTile::row(), ScaleTiming::Dynamic);
}

LayerQuant tiny_fp8_block(Extent rows, Extent cols, DType scale_dtype) {
  return with_input(fp8(ScaleTile::block(rows, cols), scale_dtype), ScaleTile::group(cols),
                    ScaleTiming::Dynamic);
}

LayerQuant tiny_fp8_weight_only(ScaleTile tile, DType scale_dtype) {
  return fp8(tile, scale_dtype);
}

LayerQuant tiny_mxfp8() {
  LayerQuant quant = with_input(fp8(ScaleTile::group(32), DType::F8E8M0), ScaleTile::group(32),
                                ScaleTiming::Dynamic);
  quant.input->scale_dtype = DType::F8E8M0;
  return quant;
}

TinyCheckpoint::TinyCheckpoint(uint64_t seed)
    : random_(seed), config_(std::make_unique<nlohmann::json>(nlohmann::json::object())) {}
TinyCheckpoint::TinyCheckpoint(TinyCheckpoint&&) noexcept = default;
TinyCheckpoint& TinyCheckpoint::operator=(TinyCheckpoint&&) noexcept = default;
TinyCheckpoint::~TinyCheckpoint() = default;

nlohmann::json& TinyCheckpoint::config() {
  return *config_;
}

void TinyCheckpoint::add(const std::string& name, DType dtype, Shape shape,
                         std::vector<std::byte> bytes) {
  OCTET_CHECK(static_cast<int64_t>(bytes.size()) == shape.elements() * bytes_of(dtype),
              "{}: {} bytes for {}", name, bytes.size(), to_string(shape));
  tensors_[name] = Tensor{dtype, shape, std::move(bytes), {}};
}

void TinyCheckpoint::add_values(const std::string& name, DType dtype, Shape shape,
                                std::span<const float> values) {
  add(name, dtype, shape, encode(dtype, values));
  Tensor& tensor = tensors_[name];
  for (size_t i = 0; i < values.size(); ++i) {
    tensor.values.push_back(
        load(dtype, tensor.bytes.data() + i * static_cast<size_t>(bytes_of(dtype))));
  }
}

void TinyCheckpoint::add_normal(const std::string& name, DType dtype, Shape shape, float deviation,
                                float mean) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (float& value : values) value = mean + deviation * random_.normal();
  add_values(name, dtype, shape, values);
}

void TinyCheckpoint::add_linear(const std::string& module, int64_t n, int64_t k,
                                const LayerQuant& quant, bool bias) {
  linears_.push_back({module, quant});
  std::vector<float> weights(static_cast<size_t>(n * k));
  const float deviation = 1 / std::sqrt(static_cast<float>(k));
  for (float& weight : weights) weight = deviation * random_.normal();
  const QuantSpec& spec = quant.weight;
  if (is_f8(spec.dtype)) {
    Quantised stored = quantise(weights, n, k, spec);
    add(module + ".weight", spec.dtype, {n, k}, std::move(stored.codes));
    tensors_[module + ".weight"].values = std::move(stored.values);
    const Shape shape = scale_shape(spec.tile, n, k);
    const bool e8m0 = spec.scale_dtype == DType::F8E8M0;
    add(module + ".weight_scale", e8m0 ? DType::U8 : spec.scale_dtype, shape,
        encode(spec.scale_dtype, stored.scales));
    tensors_[module + ".weight_scale"].values.assign(stored.scales.begin(), stored.scales.end());
  } else {
    add_values(module + ".weight", spec.dtype, {n, k}, weights);
  }
  if (quant.input && quant.input->timing == ScaleTiming::Static) {
    // Inputs up to 4, what a norm gives; larger ones saturate, which is part of the format.
    const float scale = 4.0F / static_cast<float>(info(quant.input->dtype).max_finite);
    add_values(module + ".input_scale", spec.scale_dtype, Shape{1}, std::span(&scale, 1));
  }
  if (bias) {
    const DType dtype = is_f8(spec.dtype) ? DType::BF16 : spec.dtype;
    add_normal(module + ".bias", dtype, {n}, 0.1F);
  }
}

void TinyCheckpoint::remove(const std::string& name) {
  OCTET_CHECK(tensors_.erase(name) == 1, "{} is not there", name);
}

void TinyCheckpoint::rename(const std::string& from, const std::string& to) {
  auto node = tensors_.extract(from);
  OCTET_CHECK(!node.empty() && !tensors_.contains(to), "{} to {}", from, to);
  node.key() = to;
  tensors_.insert(std::move(node));
}

void TinyCheckpoint::join(std::span<const std::string> modules, const std::string& into) {
  for (const char* leaf : {".weight", ".weight_scale", ".bias", ".input_scale"}) {
    Tensor joined;
    for (const std::string& module : modules) {
      const auto it = tensors_.find(module + leaf);
      if (it == tensors_.end()) continue;
      const Tensor part = std::move(it->second);
      tensors_.erase(it);
      if (std::string_view(leaf) == ".input_scale" && !joined.bytes.empty()) continue;
      const int64_t rows = joined.shape.rank() == 0 ? 0 : joined.shape[0];
      joined.dtype = part.dtype;
      joined.shape = part.shape.rank() == 2 ? Shape{rows + part.shape[0], part.shape[1]}
                                            : Shape{rows + part.shape[0]};
      joined.bytes.insert(joined.bytes.end(), part.bytes.begin(), part.bytes.end());
      joined.values.insert(joined.values.end(), part.values.begin(), part.values.end());
    }
    if (!joined.bytes.empty()) tensors_[into + leaf] = std::move(joined);
  }
}

void TinyCheckpoint::move_all(const std::string& from, const std::string& to) {
  for (const std::string& name : names()) {
    if (name.starts_with(from)) rename(name, to + name.substr(from.size()));
  }
}

std::vector<std::string> TinyCheckpoint::names() const {
  std::vector<std::string> list;
  for (const auto& [name, tensor] : tensors_) list.push_back(name);
  return list;
}

const std::vector<double>& TinyCheckpoint::values(const std::string& name) const {
  const auto it = tensors_.find(name);
  OCTET_CHECK(it != tensors_.end(), "{} is not there", name);
  return it->second.values;
}

void TinyCheckpoint::quantise_config(TinyDialect dialect) {
  nlohmann::json plain = nlohmann::json::array();
  std::vector<std::pair<LayerQuant, std::vector<std::string>>> schemes;
  for (const Linear& linear : linears_) {
    if (!is_f8(linear.quant.weight.dtype)) {
      plain.push_back(linear.module);
      continue;
    }
    const auto same = [&](const auto& scheme) { return scheme.first == linear.quant; };
    auto it = std::find_if(schemes.begin(), schemes.end(), same);
    if (it == schemes.end()) it = schemes.insert(it, {linear.quant, {}});
    it->second.push_back(linear.module);
  }
  if (schemes.empty()) return;
  nlohmann::json& out = (*config_)["quantization_config"];
  if (dialect == TinyDialect::CompressedTensors) {
    out = {{"quant_method", "compressed-tensors"},
           {"format", schemes[0].first.input ? "float-quantized" : "naive-quantized"},
           {"config_groups", nlohmann::json::object()},
           {"ignore", plain},
           {"kv_cache_scheme", nullptr},
           {"quantization_status", "compressed"}};
    for (size_t i = 0; i < schemes.size(); ++i) {
      nlohmann::json group = group_of(schemes[i].first);
      if (i == 0) {
        group["targets"] = {"Linear"};
      } else {
        group["targets"] = schemes[i].second;
      }
      out["config_groups"][fmt::format("group_{}", i)] = std::move(group);
    }
    return;
  }
  OCTET_CHECK(schemes.size() == 1, "fp8 takes one scheme, not {}", schemes.size());
  const LayerQuant& quant = schemes[0].first;
  OCTET_CHECK(quant.input.has_value(), "fp8 has no weight-only form");
  out = {{"quant_method", "fp8"},
         {"activation_scheme", quant.input->timing == ScaleTiming::Static ? "static" : "dynamic"},
         {"modules_to_not_convert", plain}};
  const ScaleTile& tile = quant.weight.tile;
  if (tile.cols == kWhole) return;
  out["weight_block_size"] = {tile.rows, tile.cols};
  for (const std::string& module : schemes[0].second) {
    if (tensors_.contains(module + ".weight_scale")) {
      rename(module + ".weight_scale", module + ".weight_scale_inv");
    }
  }
}

void TinyCheckpoint::write_shard(const std::filesystem::path& path,
                                 std::span<const std::string> names) const {
  std::vector<TensorSpec> specs;
  for (const std::string& name : names) {
    const Tensor& tensor = tensors_.at(name);
    specs.push_back({name, tensor.dtype, tensor.shape});
  }
  const std::pair<std::string, std::string> metadata{"format", "pt"};
  std::filesystem::remove(path);
  SafetensorsWriter writer(path, std::move(specs), std::span(&metadata, 1));
  for (const std::string& name : names) writer.write(name, tensors_.at(name).bytes);
  writer.finish();
}

std::filesystem::path TinyCheckpoint::write(const std::filesystem::path& dir, int shards) const {
  OCTET_CHECK(shards >= 1, "{} shards", shards);
  std::filesystem::create_directories(dir);
  write_file(dir / "config.json", config_->dump(2));
  const std::vector<std::string> names = this->names();
  if (shards == 1) {
    write_shard(dir / "model.safetensors", names);
    return dir;
  }
  nlohmann::json map = nlohmann::json::object();
  const auto count = static_cast<size_t>(shards);
  for (size_t i = 0; i < count; ++i) {
    const std::string file = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards);
    const size_t begin = names.size() * i / count;
    const size_t end = names.size() * (i + 1) / count;
    write_shard(dir / file, std::span(names).subspan(begin, end - begin));
    for (size_t t = begin; t < end; ++t) map[names[t]] = file;
  }
  const nlohmann::json index{{"metadata", {{"total_size", 0}}}, {"weight_map", map}};
  write_file(dir / "model.safetensors.index.json", index.dump(2));
  return dir;
}

TinyFolder::TinyFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "octet-test-XXXXXX").string();
  OCTET_CHECK(::mkdtemp(pattern.data()) != nullptr, "{}", pattern);
  path_ = pattern;
}

TinyFolder::~TinyFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace octet
