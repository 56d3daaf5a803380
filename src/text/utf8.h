#pragma once
// UTF-8 as values: check, decode, encode, and the lossy decoding of a byte stream that never emits
// half a character.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octet {

// Byte offset of the first byte that is not part of well-formed UTF-8 (Unicode 15, table 3-7);
// nullopt if all is well.
std::optional<size_t> find_invalid_utf8(std::string_view bytes);

// The code point that starts at `text[at]`, and its length in bytes.
// Requires well-formed UTF-8 and at < text.size() on a character boundary.
struct CodePoint {
  uint32_t value;
  uint32_t bytes;
};
CodePoint code_point_at(std::string_view text, size_t at);

// The code point that ends just before `text[end]`. Requires well-formed UTF-8 and end > 0 on a
// character boundary.
CodePoint code_point_before(std::string_view text, size_t end);

// Appends the UTF-8 form of `value` (1 to 4 bytes). Requires a Unicode scalar value.
void append_utf8(std::string& out, uint32_t value);

// Decodes a byte stream that arrives in pieces. Every maximal ill-formed part becomes one U+FFFD,
// as the Unicode standard (3.9, "U+FFFD Substitution of Maximal Subparts") and Rust's
// from_utf8_lossy do, so the pieces may be cut anywhere.
class LossyUtf8 {
 public:
  // Appends to `out` all characters that `bytes` completes; the start of an unfinished one is kept
  // for the next call.
  void push(std::string_view bytes, std::string& out);
  // Ends the stream: an unfinished character becomes one U+FFFD.
  void flush(std::string& out);
  // Bytes of an unfinished character, 0 to 3.
  size_t pending() const { return size_; }

 private:
  void feed(uint8_t byte, std::string& out);

  char held_[4] = {};
  uint8_t size_ = 0;     // bytes held
  uint8_t missing_ = 0;  // continuation bytes that must follow
  uint8_t low_ = 0x80;   // bounds of the next continuation byte
  uint8_t high_ = 0xBF;
};

}  // namespace octet
