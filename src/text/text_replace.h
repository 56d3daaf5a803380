#pragma once
// Replacing one text by another.
#include <string>
#include <string_view>

namespace octet {

// `text` with `content` for every `wanted`, leftmost first, none of them overlapping. Requires that
// `wanted` is not empty.
inline std::string replace_all(std::string_view text, std::string_view wanted,
                               std::string_view content) {
  std::string result;
  size_t done = 0;
  for (size_t at = text.find(wanted); at != std::string_view::npos; at = text.find(wanted, done)) {
    result.append(text, done, at - done).append(content);
    done = at + wanted.size();
  }
  return result.append(text, done);
}

}  // namespace octet
