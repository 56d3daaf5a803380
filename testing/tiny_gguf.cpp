#include "testing/tiny_gguf.h"

#include <cstring>
#include <fstream>

namespace octet {
namespace {

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string raw_text(std::string_view text) {
  return raw<uint64_t>(text.size()) + std::string(text);
}

template <class T>
std::string raw_array(uint32_t type, const std::vector<T>& items) {
  std::string bytes = raw(type) + raw<uint64_t>(items.size());
  for (const T& item : items) bytes += raw(item);
  return bytes;
}

void pad(std::string& bytes, size_t alignment) {
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment, '\0');
}

// A character of one or two bytes.
std::string utf8(uint32_t character) {
  if (character < 0x80) return {static_cast<char>(character)};
  return {static_cast<char>(0xC0 | character >> 6), static_cast<char>(0x80 | (character & 0x3F))};
}

// All bytes in the order of GPT-2's table of characters.
std::vector<std::string> byte_tokens() {
  std::vector<std::string> tokens;
  uint32_t other = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool kept =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    tokens.push_back(utf8(kept ? byte : other++));
  }
  return tokens;
}

}  // namespace

void TinyGguf::set_raw(const std::string& key, uint32_t type, const std::string& bytes) {
  values_[key] = raw(type) + bytes;
}

void TinyGguf::set_text(const std::string& key, std::string_view text) {
  set_raw(key, 8, raw_text(text));
}

void TinyGguf::set_integer(const std::string& key, uint32_t value) {
  set_raw(key, 4, raw(value));
}

void TinyGguf::set_number(const std::string& key, float value) {
  set_raw(key, 6, raw(value));
}

void TinyGguf::set_bool(const std::string& key, bool value) {
  set_raw(key, 7, std::string(1, value ? '\1' : '\0'));
}

void TinyGguf::set_strings(const std::string& key, const std::vector<std::string>& items) {
  std::string bytes = raw<uint32_t>(8) + raw<uint64_t>(items.size());
  for (const std::string& item : items) bytes += raw_text(item);
  set_raw(key, 9, bytes);
}

void TinyGguf::set_integers(const std::string& key, const std::vector<int32_t>& items) {
  set_raw(key, 9, raw_array(5, items));
}

void TinyGguf::set_numbers(const std::string& key, const std::vector<float>& items) {
  set_raw(key, 9, raw_array(6, items));
}

void TinyGguf::set_tensor(const std::string& name, const std::vector<uint64_t>& extents,
                          uint32_t type, std::string bytes) {
  tensors_[name] = {extents, type, std::move(bytes)};
}

void TinyGguf::set_zeros(const std::string& name, const std::vector<uint64_t>& extents) {
  uint64_t bytes = sizeof(float);
  for (const uint64_t extent : extents) bytes *= extent;
  set_tensor(name, extents, 0, std::string(bytes, '\0'));
}

void TinyGguf::set_offset(const std::string& name, uint64_t offset) {
  tensors_[name].offset = static_cast<int64_t>(offset);
}

void TinyGguf::set_alignment(uint32_t alignment) {
  set_integer("general.alignment", alignment);
  alignment_ = alignment;
}

std::string TinyGguf::bytes(uint32_t version) const {
  std::string file =
      "GGUF" + raw(version) + raw<uint64_t>(tensors_.size()) + raw<uint64_t>(values_.size());
  for (const auto& [key, value] : values_) file += raw_text(key) + value;
  std::string data;
  for (const auto& [name, tensor] : tensors_) {
    file += raw_text(name) + raw(static_cast<uint32_t>(tensor.extents.size()));
    for (size_t i = tensor.extents.size(); i > 0; --i) file += raw(tensor.extents[i - 1]);
    file += raw(tensor.type);
    file += raw(tensor.offset < 0 ? uint64_t{data.size()} : static_cast<uint64_t>(tensor.offset));
    data += tensor.bytes;
    pad(data, alignment_);
  }
  pad(file, alignment_);
  return file + data;
}

std::filesystem::path TinyGguf::write(const std::filesystem::path& path) const {
  const std::string file = bytes();
  std::ofstream(path, std::ios::binary)
      .write(file.data(), static_cast<std::streamsize>(file.size()));
  return path;
}

TinyGguf tiny_gguf() {
  TinyGguf file;
  file.set_text("general.architecture", "llama");
  file.set_integer("llama.block_count", 1);
  file.set_integer("llama.context_length", 128);
  file.set_integer("llama.embedding_length", 32);
  file.set_integer("llama.feed_forward_length", 64);
  file.set_integer("llama.attention.head_count", 1);
  file.set_number("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  file.set_text("tokenizer.ggml.model", "gpt2");
  file.set_text("tokenizer.ggml.pre", "gpt-2");
  std::vector<std::string> tokens = byte_tokens();
  tokens.insert(tokens.end(), {"<s>", "</s>"});
  std::vector<int32_t> types(256, 1);
  types.insert(types.end(), {3, 3});
  file.set_strings("tokenizer.ggml.tokens", tokens);
  file.set_integers("tokenizer.ggml.token_type", types);
  file.set_strings("tokenizer.ggml.merges", {});
  file.set_integer("tokenizer.ggml.bos_token_id", 256);
  file.set_integer("tokenizer.ggml.eos_token_id", 257);
  file.set_zeros("token_embd.weight", {258, 32});
  file.set_zeros("output_norm.weight", {32});
  file.set_zeros("blk.0.attn_norm.weight", {32});
  file.set_zeros("blk.0.ffn_norm.weight", {32});
  for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
    file.set_zeros("blk.0." + std::string(name) + ".weight", {32, 32});
  }
  file.set_zeros("blk.0.ffn_gate.weight", {64, 32});
  file.set_zeros("blk.0.ffn_up.weight", {64, 32});
  file.set_zeros("blk.0.ffn_down.weight", {32, 64});
  return file;
}

}  // namespace octet
