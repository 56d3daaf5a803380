#include "text/tokenizer_config.h"

#include <simdjson.h>

#include "base/error.h"
#include "text/json_shown.h"

namespace octet {
namespace {

namespace dom = simdjson::dom;

// The member `key`; nullopt if it is absent or null.
std::optional<dom::element> member(dom::object object, std::string_view key) {
  dom::element value;
  if (object.at_key(key).get(value) || value.is_null()) return std::nullopt;
  return value;
}

std::optional<std::string> token(dom::object config, std::string_view key) {
  std::optional<dom::element> value = member(config, key);
  dom::object described;
  if (value && !value->get(described)) value = member(described, "content");
  if (!value) return std::nullopt;
  std::string_view text;
  if (value->get(text)) {
    throw_error(
        Code::BadInput,
        fmt::format("/{}: expected a string, or an object with a string \"content\", got {}", key,
                    shown_json(*value)));
  }
  return std::string(text);
}

std::optional<bool> flag(dom::object config, std::string_view key) {
  const std::optional<dom::element> value = member(config, key);
  if (!value) return std::nullopt;
  bool result = false;
  if (value->get(result))
    throw_error(Code::BadInput,
                fmt::format("/{}: expected true or false, got {}", key, shown_json(*value)));
  return result;
}

}  // namespace

TokenizerConfig parse_tokenizer_config(std::string_view json) {
  dom::parser parser;
  dom::element root;
  if (const auto error = parser.parse(json.data(), json.size()).get(root)) {
    throw_error(Code::BadInput,
                fmt::format("this is not JSON: {}", simdjson::error_message(error)));
  }
  dom::object config;
  if (root.get(config))
    throw_error(Code::BadInput, fmt::format("/: expected an object, got {}", shown_json(root)));
  return {token(config, "bos_token"), token(config, "eos_token"), flag(config, "add_bos_token"),
          flag(config, "add_eos_token")};
}

}  // namespace octet
