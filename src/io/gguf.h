#pragma once
// GGUF files of version 2 and 3, little-endian: metadata and tensors, every bound proven once.
// Format: ggml, docs/gguf.md: magic, version, counts, values, tensor descriptions, padding, data.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/mapped_file.h"
#include "io/gguf_type.h"
#include "num/tensor.h"

namespace octet {

// Several values of one kind. Views live as long as the file.
using GgufStrings = std::vector<std::string_view>;
using GgufIntegers = std::vector<int64_t>;  // of every integer type; unsigned ones must fit
using GgufNumbers = std::vector<double>;    // of float32 and float64
using GgufBools = std::vector<bool>;

// One metadata value: integers of every width, floats of both, text, or an array of them.
using GgufValue = std::variant<bool, int64_t, double, std::string_view, GgufStrings, GgufIntegers,
                               GgufNumbers, GgufBools>;

// One tensor. Its bytes are proven to lie inside the file and to be as many as shape and type say.
struct GgufTensor {
  std::string_view name;
  Shape shape;  // outermost extent first: the reverse of the file's order
  const GgufTensorType* type = nullptr;
  uint64_t offset = 0;  // of the first byte, from the start of the file
  uint64_t bytes = 0;
};

// What a file says, over bytes that outlive it. Memory is at most a small multiple of the bytes.
struct GgufHeader {
  uint32_t version = 0;
  std::unordered_map<std::string_view, GgufValue> values;
  std::vector<GgufTensor> tensors;  // in the order of the file
};

// The next step after an error that has none of its own.
inline constexpr std::string_view kGgufHint =
    "the file is damaged, or not what current tools write: download it again, or convert the model "
    "again with a current llama.cpp";

// Reads and checks a whole file: lengths, counts, names given once, known types, whole blocks,
// alignment, tensors one after the other with nothing but padding between and behind them. Throws
// BadInput with `where` naming the value or tensor.
GgufHeader parse_gguf(std::span<const std::byte> file, std::string_view where);

// A mapped file with typed reading of its values; move-only.
class GgufFile {
 public:
  // Throws as parse_gguf and MappedFile; BadInput for one part of a file that was split.
  static GgufFile open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  uint32_t version() const { return header_.version; }
  std::span<const GgufTensor> tensors() const { return header_.tensors; }
  // The tensor of that name, or null. Cost: O(tensors).
  const GgufTensor* find(std::string_view name) const;
  std::span<const std::byte> bytes(const GgufTensor& tensor) const;

  // The names of all values, sorted.
  std::vector<std::string_view> keys() const;
  // A value of any type, or null.
  const GgufValue* find_value(std::string_view key) const;
  bool has(std::string_view key) const { return header_.values.contains(key); }
  // A value that must be there, of one type; `find_...` gives nothing when it is absent. Throws
  // BadInput naming file and key.
  std::string_view text(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t min, int64_t max) const;
  double number(std::string_view key) const;
  std::optional<std::string_view> find_text(std::string_view key) const;
  std::optional<int64_t> find_integer(std::string_view key, int64_t min, int64_t max) const;
  std::optional<double> find_number(std::string_view key) const;
  std::optional<bool> find_bool(std::string_view key) const;
  const GgufStrings* find_strings(std::string_view key) const;
  const GgufIntegers* find_integers(std::string_view key) const;
  const GgufNumbers* find_numbers(std::string_view key) const;

  // Throws BadInput "FILE: WHAT".
  [[noreturn]] void fail(std::string_view what, std::string_view hint = kGgufHint) const;

 private:
  GgufFile(std::filesystem::path path, MappedFile map, GgufHeader header);
  template <class T>
  const T* value(std::string_view key, std::string_view expected) const;
  [[noreturn]] void fail_absent(std::string_view key) const;

  std::filesystem::path path_;
  MappedFile map_;
  GgufHeader header_;
};

}  // namespace octet
