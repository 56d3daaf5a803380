#include "base/printable.h"

#include <fmt/format.h>

namespace octet {
namespace {

std::string escaped(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    if ((byte < 0x20 && kept.find(text[i]) == std::string_view::npos) || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else if (byte == 0xC2 && next >= 0x80 && next <= 0x9F) {
      // Terminals that know C1 controls take U+009B for the beginning of an escape sequence.
      out += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) {
  return escaped(text, "\n\t");
}

std::string printable_name(std::string_view text) {
  return escaped(text, "");
}

}  // namespace octet
