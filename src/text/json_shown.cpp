#include "text/json_shown.h"

#include <cstdint>

namespace octet {
namespace {

// `text` without the white space behind it, cut between two characters.
std::string cut(std::string_view text) {
  constexpr size_t kShown = 60;
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  if (text.size() <= kShown) return std::string(text);
  size_t end = kShown;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace

std::string shown_json(simdjson::dom::element value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  return cut(simdjson::minify(value));
}

std::string shown_json(simdjson::ondemand::value value) {
  simdjson::ondemand::json_type type{};
  if (value.type().get(type)) return "what is no JSON value";
  if (type == simdjson::ondemand::json_type::object) return "an object";
  if (type == simdjson::ondemand::json_type::array) return "an array";
  return cut(value.raw_json_token());
}

}  // namespace octet
