#include "text/utf8.h"

#include <simdjson.h>

namespace octet {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// What a lead byte promises: how many bytes follow, and the bounds of the first of them (Unicode
// 15, table 3-7).
struct Lead {
  uint8_t missing, low, high;
};

// missing = 0 marks a byte that starts no character of several bytes.
constexpr Lead lead_of(uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};  // no surrogates
  if (byte >= 0xE1 && byte <= 0xEF) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {3, 0x80, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};  // up to U+10FFFF
  return {0, 0, 0};
}

// Bytes of the well-formed character at `at`, 0 if there is none.
size_t well_formed_at(std::string_view bytes, size_t at) {
  const auto first = static_cast<uint8_t>(bytes[at]);
  if (first < 0x80) return 1;
  Lead lead = lead_of(first);
  if (lead.missing == 0 || bytes.size() - at <= lead.missing) return 0;
  for (size_t i = 1; i <= lead.missing; ++i) {
    const auto next = static_cast<uint8_t>(bytes[at + i]);
    if (next < lead.low || next > lead.high) return 0;
    lead.low = 0x80;
    lead.high = 0xBF;
  }
  return lead.missing + size_t{1};
}

}  // namespace

std::optional<size_t> find_invalid_utf8(std::string_view bytes) {
  if (simdjson::validate_utf8(bytes.data(), bytes.size())) return std::nullopt;
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = well_formed_at(bytes, at);
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

CodePoint code_point_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<uint8_t>(text[at + i]));
  };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (first < 0xF0) return {(first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F),
          4};
}

CodePoint code_point_before(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
  return code_point_at(text, at);
}

void append_utf8(std::string& out, uint32_t value) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | value >> 6);
    put(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    put(0xE0 | value >> 12);
    put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  } else {
    put(0xF0 | value >> 18);
    put(0x80 | (value >> 12 & 0x3F));
    put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  }
}

void LossyUtf8::push(std::string_view bytes, std::string& out) {
  for (const char byte : bytes) feed(static_cast<uint8_t>(byte), out);
}

void LossyUtf8::feed(uint8_t byte, std::string& out) {
  if (missing_ > 0) {
    if (byte >= low_ && byte <= high_) {
      held_[size_++] = static_cast<char>(byte);
      low_ = 0x80;
      high_ = 0xBF;
      if (--missing_ == 0) {
        out.append(held_, size_);
        size_ = 0;
      }
      return;
    }
    flush(out);  // the part so far is ill-formed; this byte starts afresh
  }
  if (byte < 0x80) {
    out.push_back(static_cast<char>(byte));
    return;
  }
  const Lead lead = lead_of(byte);
  if (lead.missing == 0) {
    out.append(kReplacement);
    return;
  }
  held_[0] = static_cast<char>(byte);
  size_ = 1;
  missing_ = lead.missing;
  low_ = lead.low;
  high_ = lead.high;
}

void LossyUtf8::flush(std::string& out) {
  if (size_ > 0) out.append(kReplacement);
  size_ = 0;
  missing_ = 0;
}

}  // namespace octet
