#include "text/unicode.h"

#include <utf8proc.h>

#include "text/unicode_later.h"

namespace octet {
namespace {

// Numbers that Unicode 17 added, as [first, last].
constexpr uint32_t kNumbers17[][2] = {{0x11DE0, 0x11DE9}, {0x16FF4, 0x16FF6}};

}  // namespace

bool is_white_space(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_numeric(uint32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  if (category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
      category == UTF8PROC_CATEGORY_NO) {
    return true;
  }
  if (category != UTF8PROC_CATEGORY_CN) return false;
  for (const LaterCharacters& range : kLaterCharacters) {
    if (c >= range.first && c <= range.last) return range.category.front() == 'N';
  }
  for (const auto& range : kNumbers17) {
    if (c >= range[0] && c <= range[1]) return true;
  }
  return false;
}

}  // namespace octet
