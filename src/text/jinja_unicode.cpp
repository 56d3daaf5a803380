#include "text/jinja_unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>

#include "text/utf8.h"

namespace octet::jinja {
namespace {

utf8proc_category_t category(uint32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

constexpr uint32_t kSharpS = 0xDF;

void append_upper(std::string& out, uint32_t c) {
  if (c == kSharpS) {
    out += "SS";
  } else {
    append_utf8(out, static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_title(std::string& out, uint32_t c) {
  if (c == kSharpS) {
    out += "Ss";
  } else {
    append_utf8(out, static_cast<uint32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_lower(std::string& out, uint32_t c) {
  append_utf8(out, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

bool is_cased(uint32_t c) {
  return is_upper(c) || is_lower(c) || category(c) == UTF8PROC_CATEGORY_LT;
}

bool is_line_end(uint32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

template <class Function>
std::string map_characters(std::string_view text, Function&& function) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    function(out, point.value, at);
    at += point.bytes;
  }
  return out;
}

}  // namespace

bool is_python_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool is_printable(uint32_t c) {
  if (c == ' ') return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

bool is_letter(uint32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_digit(uint32_t c) {
  return category(c) == UTF8PROC_CATEGORY_ND || c == 0xB2 || c == 0xB3 || c == 0xB9 ||
         c == 0x2070 || (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089);
}

bool is_numeric_character(uint32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

bool is_upper(uint32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LU;
}
bool is_lower(uint32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LL;
}

std::string_view strip(std::string_view text, bool left, bool right, std::string_view characters) {
  const auto strips = [&](uint32_t c) {
    if (characters.empty()) return is_python_space(c);
    for (size_t at = 0; at < characters.size();) {
      const CodePoint point = code_point_at(characters, at);
      if (point.value == c) return true;
      at += point.bytes;
    }
    return false;
  };
  while (left && !text.empty()) {
    const CodePoint point = code_point_at(text, 0);
    if (!strips(point.value)) break;
    text.remove_prefix(point.bytes);
  }
  while (right && !text.empty()) {
    const CodePoint point = code_point_before(text, text.size());
    if (!strips(point.value)) break;
    text.remove_suffix(point.bytes);
  }
  return text;
}

std::string to_upper(std::string_view text) {
  return map_characters(text, [](std::string& out, uint32_t c, size_t) { append_upper(out, c); });
}

std::string to_lower(std::string_view text) {
  return map_characters(text, [](std::string& out, uint32_t c, size_t) { append_lower(out, c); });
}

std::string capitalize(std::string_view text) {
  return map_characters(text, [](std::string& out, uint32_t c, size_t at) {
    at == 0 ? append_title(out, c) : append_lower(out, c);
  });
}

std::string title(std::string_view text) {
  bool inside = false;
  return map_characters(text, [&inside](std::string& out, uint32_t c, size_t) {
    inside ? append_lower(out, c) : append_title(out, c);
    inside = is_cased(c);
  });
}

std::string swap_case(std::string_view text) {
  return map_characters(text, [](std::string& out, uint32_t c, size_t) {
    is_upper(c) ? append_lower(out, c) : append_upper(out, c);
  });
}

namespace {

template <class Predicate>
bool all_characters(std::string_view text, Predicate&& predicate) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (!predicate(point.value)) return false;
    at += point.bytes;
  }
  return !text.empty();
}

// Some character is cased and none is of the other case.
bool is_one_case(std::string_view text, bool (*wanted)(uint32_t)) {
  bool any = false;
  return all_characters(text,
                        [&](uint32_t c) {
                          any |= wanted(c);
                          return wanted(c) || !is_cased(c);
                        }) &&
         any;
}

}  // namespace

bool is_letters(std::string_view text) {
  return all_characters(text, is_letter);
}

bool is_letters_or_digits(std::string_view text) {
  return all_characters(text, [](uint32_t c) { return is_letter(c) || is_numeric_character(c); });
}

bool is_digits(std::string_view text) {
  return all_characters(text, is_digit);
}

bool is_decimal_digits(std::string_view text) {
  return all_characters(text, [](uint32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; });
}

bool is_numeric_text(std::string_view text) {
  return all_characters(text, is_numeric_character);
}
bool is_space_text(std::string_view text) {
  return all_characters(text, is_python_space);
}

bool is_ascii_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_upper_text(std::string_view text) {
  return is_one_case(text, is_upper);
}
bool is_lower_text(std::string_view text) {
  return is_one_case(text, is_lower);
}

bool is_title_text(std::string_view text) {
  bool inside = false;
  bool any = false;
  const bool holds = all_characters(text, [&](uint32_t c) {
    const bool starts = is_upper(c) || category(c) == UTF8PROC_CATEGORY_LT;
    const bool right = inside ? !starts : !is_lower(c);
    inside = is_cased(c);
    any |= inside;
    return right;
  });
  return holds && any;
}

int64_t count_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

size_t byte_offset(std::string_view text, size_t index) {
  size_t at = 0;
  while (index > 0 && at < text.size()) {
    at += code_point_at(text, at).bytes;
    --index;
  }
  return at;
}

std::vector<size_t> character_offsets(std::string_view text) {
  std::vector<size_t> offsets;
  for (size_t at = 0; at < text.size(); at += code_point_at(text, at).bytes) offsets.push_back(at);
  offsets.push_back(text.size());
  return offsets;
}

void for_each_line(std::string_view text, bool keep_ends,
                   const std::function<void(std::string_view)>& take) {
  size_t start = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    size_t next = at + point.bytes;
    if (is_line_end(point.value)) {
      if (point.value == '\r' && next < text.size() && text[next] == '\n') ++next;
      take(text.substr(start, (keep_ends ? next : at) - start));
      start = next;
    }
    at = next;
  }
  if (start < text.size()) take(text.substr(start));
}

size_t find_text(std::string_view text, std::string_view needle, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  if (needle.size() > text.size() - from) return std::string_view::npos;
  // memmem is linear; std::string_view::find is quadratic on repetitive text.
  const void* found = memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace octet::jinja
