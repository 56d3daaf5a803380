#pragma once
// Writes tiny GGUF files for tests: any values and tensors, sound or spoilt.
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace octet {

// A GGUF file in memory. Values are kept by key, tensors by name: setting one again replaces it.
class TinyGguf {
 public:
  void set_text(const std::string& key, std::string_view text);
  void set_integer(const std::string& key, uint32_t value);  // as uint32
  void set_number(const std::string& key, float value);      // as float32
  void set_bool(const std::string& key, bool value);
  void set_strings(const std::string& key, const std::vector<std::string>& items);
  void set_integers(const std::string& key, const std::vector<int32_t>& items);  // as int32
  void set_numbers(const std::string& key, const std::vector<float>& items);     // as float32
  // A value of any type number with the bytes that follow it.
  void set_raw(const std::string& key, uint32_t type, const std::string& bytes);
  void remove(const std::string& key) { values_.erase(key); }

  // A tensor of that type number; extents outermost first.
  void set_tensor(const std::string& name, const std::vector<uint64_t>& extents, uint32_t type,
                  std::string bytes);
  // The same of float32 zeros.
  void set_zeros(const std::string& name, const std::vector<uint64_t>& extents);
  // Where the bytes of a tensor are said to lie, counted from the data, whatever is there.
  void set_offset(const std::string& name, uint64_t offset);
  void remove_tensor(const std::string& name) { tensors_.erase(name); }

  // general.alignment and what bytes() follows; 32 unless set.
  void set_alignment(uint32_t alignment);

  // The whole file.
  std::string bytes(uint32_t version = 3) const;
  std::filesystem::path write(const std::filesystem::path& path) const;

 private:
  struct Tensor {
    std::vector<uint64_t> extents;
    uint32_t type = 0;
    std::string bytes;
    int64_t offset = -1;  // below 0: the next free one
  };

  size_t alignment_ = 32;
  std::map<std::string, std::string> values_;  // key -> type number and bytes
  std::map<std::string, Tensor> tensors_;
};

// A whole model: one layer of the architecture "llama" with one head of 32 elements, tied, every
// weight 0, and a byte-level tokenizer of 258 tokens without merges.
TinyGguf tiny_gguf();

}  // namespace octet
