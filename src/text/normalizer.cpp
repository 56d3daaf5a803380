#include "text/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/error.h"

namespace octet {

std::string_view Normalizer::apply(std::string_view text, std::string& buffer) const {
  // Text below U+0300, whose lead bytes are below 0xCC, is in form C already (Unicode TR15, 9.1).
  const auto quick = [](char byte) { return static_cast<uint8_t>(byte) < 0xCC; };
  if (!nfc_ || std::all_of(text.begin(), text.end(), quick)) return text;
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &result,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
  OCTET_CHECK(length >= 0, "utf8proc_map: {}", utf8proc_errmsg(length));
  buffer.assign(reinterpret_cast<const char*>(result), static_cast<size_t>(length));
  return buffer;
}

}  // namespace octet
