#pragma once
// Counts in messages for people.
#include <fmt/format.h>

#include <string>
#include <string_view>

namespace octet {

// "1 token", "0 tokens", "7 tokens": for nouns whose plural has an s.
template <class Integer>
std::string counted(Integer count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace octet
