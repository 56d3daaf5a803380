#pragma once
// Writes one safetensors file: header first, then the bytes of each tensor in any order.
// Format: huggingface/safetensors, README "Format".
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "num/tensor.h"

namespace octet {

struct TensorSpec {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;
};

// The file is laid out as the safetensors library does: wide dtypes first, then by name, header
// padded to 8 bytes, so that every tensor is aligned. Move-only; a file that was not finished is
// removed.
class SafetensorsWriter {
 public:
  // Writes the header and reserves the disk space. `metadata` becomes __metadata__. Throws BadInput
  // for a name given twice, Environment naming `path` when the disk is full or not writable.
  SafetensorsWriter(std::filesystem::path path, std::vector<TensorSpec> tensors,
                    std::span<const std::pair<std::string, std::string>> metadata = {});
  SafetensorsWriter(SafetensorsWriter&&) noexcept;
  SafetensorsWriter& operator=(SafetensorsWriter&&) = delete;
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
  ~SafetensorsWriter();

  // Appends bytes to tensor `name`; one tensor may come in several calls, tensors in any order.
  // Throws Bug for an unknown name or too many bytes, Environment as above.
  void write(std::string_view name, std::span<const std::byte> bytes);
  // Flushes to the disk. Requires that every tensor has all its bytes. Throws as write().
  void finish();

  uint64_t file_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace octet
