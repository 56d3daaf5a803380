#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>

namespace octet {
namespace {

// Longer names and lines tell nobody more, and are what hostile files hold. A path has up to 4096
// bytes.
constexpr size_t kLongestName = 300;
constexpr size_t kLongestLine = 8192;

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

// Bytes of the character that begins `text` (Unicode, table 3-7); 0 where none does.
size_t character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  const size_t size = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (size == 0 || text.size() < size) return 0;
  if (!std::all_of(text.begin() + 1, text.begin() + static_cast<ptrdiff_t>(size), continues))
    return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return 0;
  if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return 0;
  return size;
}

// Lines longer than `longest` end with an ellipsis.
std::string escaped(std::string_view text, std::string_view kept, size_t longest) {
  std::string out;
  out.reserve(std::min(text.size(), longest));
  size_t line = 0;  // where the last one begins
  for (size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    const auto byte = static_cast<unsigned char>(rest[0]);
    const size_t size = character(rest);
    const bool kept_control = kept.find(rest[0]) != std::string_view::npos;
    if (out.size() - line >= longest && rest[0] != '\n') {
      out += "...";
      const size_t end = kept.empty() ? std::string_view::npos : text.find('\n', i);
      if (end == std::string_view::npos) break;
      i = end;
      line = out.size();
      continue;
    }
    if (size == 0 || (byte < 0x20 && !kept_control) || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else if (byte == 0xC2 && static_cast<unsigned char>(rest[1]) <= 0x9F) {
      // Terminals that know C1 controls take U+009B for the beginning of an escape sequence.
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(rest[1]));
    } else {
      out += rest.substr(0, size);
    }
    i += std::max<size_t>(size, 1);
    if (rest[0] == '\n') line = out.size();
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) {
  return escaped(text, "\n\t", kLongestLine);
}

std::string printable_name(std::string_view text) {
  return escaped(text, "", kLongestName);
}

std::string printable_line(std::string_view text) {
  return escaped(text, "", kLongestLine);
}

}  // namespace octet
