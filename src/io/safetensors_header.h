#pragma once
// The header of one safetensors file, checked whole.
// Format: huggingface/safetensors, README "Format": u64 little-endian length, JSON, bytes.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "num/tensor.h"

namespace octet {

// One tensor of a header; `begin` and `end` count from the first byte after the header.
struct HeaderTensor {
  std::string_view name;  // into the parser's arena
  DType dtype = DType::F32;
  Shape shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<HeaderTensor> tensors;  // by offset; they fill [0, data_bytes) without a hole
  uint64_t header_bytes = 0;          // 8 + length of the JSON: where the data begins
  uint64_t data_bytes = 0;
};

// Bytes that own names; views into it stay valid while it lives and grows.
class NameArena {
 public:
  std::string_view intern(std::string_view name);

 private:
  std::vector<std::vector<char>> blocks_;  // never reallocated once they hold a name
  size_t left_ = 0;
};

// Reads header files one after another with one parser's memory; names go to `arena`.
class HeaderReader {
 public:
  explicit HeaderReader(NameArena& arena);
  HeaderReader(const HeaderReader&) = delete;
  HeaderReader& operator=(const HeaderReader&) = delete;
  ~HeaderReader();

  // Checks everything that the header states: length, JSON, names given once, known dtypes, shape
  // times dtype equal to the offsets, no overlap, no hole, no bytes after the last tensor, and
  // (unless `may_be_cut`) that the file is long enough. Throws BadInput naming file and tensor.
  SafetensorsHeader read(const std::filesystem::path& file, bool may_be_cut);

 private:
  struct Parser;
  NameArena* arena_;
  std::unique_ptr<Parser> parser_;
};

}  // namespace octet
