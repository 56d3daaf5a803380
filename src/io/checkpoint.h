#pragma once
// A model on disk: config.json, the headers of its safetensors files, and their bytes mapped.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "io/quant_config.h"
#include "num/tensor.h"

namespace octet {

// One tensor of a header. Offsets are proven to lie inside the file (headers_only: inside what the
// header says the file is).
struct TensorEntry {
  std::string_view name;  // lives as long as the checkpoint
  DType dtype = DType::F32;
  Shape shape;
  int32_t shard = 0;    // index of Checkpoint::shards()
  uint64_t offset = 0;  // of the first byte, from the start of the file
  uint64_t bytes = 0;
};

// What becomes of an index that names other tensors than its files hold.
enum class IndexMismatch : uint8_t { Refuse, Ignore };

// A model folder or a single file. Immutable and safe to read from any thread; move-only.
class Checkpoint {
 public:
  // `model` is a folder (model.safetensors, an index with shards, or any *.safetensors) or one
  // .safetensors file with config.json beside it. With `headers_only` nothing is mapped, shards may
  // be cut after the header, and views have no data. Throws BadInput naming the file and what is
  // wrong; Environment when a file cannot be read. Cost: O(header bytes).
  static Checkpoint open(const std::filesystem::path& model, bool headers_only = false,
                         IndexMismatch mismatch = IndexMismatch::Refuse);

  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;
  ~Checkpoint();

  // The folder that holds config.json.
  const std::filesystem::path& dir() const;
  bool headers_only() const;
  // config.json, an object.
  const nlohmann::json& config() const;
  // generation_config.json, or null when there is none.
  const nlohmann::json* generation_config() const;
  const QuantConfig& quant() const;

  // The safetensors files read, in the order of TensorEntry::shard.
  std::span<const std::filesystem::path> shards() const;
  // Every tensor, by shard and offset.
  std::span<const TensorEntry> tensors() const;
  // The tensor called `name`, or null. Cost: one hash.
  const TensorEntry* find(std::string_view name) const;
  // The bytes of an entry of this checkpoint, aligned for its dtype; data is null with
  // headers_only. A tensor that the file does not align is copied once, on its first view.
  ConstTensorView view(const TensorEntry& entry) const;
  // Bytes of all shards together, as their headers state them.
  uint64_t file_bytes() const;
  // Remarks for the user, one line each: stray files, unaligned tensors, duplicates.
  std::span<const std::string> notes() const;

 private:
  struct Impl;
  explicit Checkpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace octet
