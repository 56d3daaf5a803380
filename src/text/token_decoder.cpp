#include "text/token_decoder.h"

#include <algorithm>
#include <charconv>

#include "text/text_replace.h"

namespace octet {
namespace {

std::string apply(const ReplaceDecoder& stage, std::string_view token, bool) {
  return replace_all(token, stage.text, stage.content);
}

std::string apply(const MetaspaceDecoder& stage, std::string_view token, bool first) {
  return replace_all(token, stage.replacement, first && stage.drops_first ? "" : " ");
}

std::string apply(const StripDecoder& stage, std::string_view token, bool) {
  size_t cut = 0;
  for (size_t i = 0;
       i < stage.start && token.compare(cut, stage.content.size(), stage.content) == 0; ++i) {
    cut += stage.content.size();
  }
  return std::string(token.substr(cut));
}

// The byte that "<0xNN>" names; false for any other text.
bool is_byte_token(std::string_view token, char& byte) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return false;
  uint8_t value = 0;
  const char* const end = token.data() + 5;
  if (std::from_chars(token.data() + 3, end, value, 16).ptr != end) return false;
  byte = static_cast<char>(value);
  return true;
}

}  // namespace

std::string TokenDecoder::bytes(std::string_view token, bool first) const {
  std::string text(token);
  for (const Stage& stage : stages) {
    text = std::visit([&](const auto& s) { return apply(s, text, first); }, stage);
  }
  char byte = 0;
  if (byte_fallback && is_byte_token(text, byte)) return {byte};
  return text;
}

bool TokenDecoder::first_differs() const {
  return std::any_of(stages.begin(), stages.end(), [](const Stage& stage) {
    const auto* metaspace = std::get_if<MetaspaceDecoder>(&stage);
    return metaspace != nullptr && metaspace->drops_first;
  });
}

}  // namespace octet
