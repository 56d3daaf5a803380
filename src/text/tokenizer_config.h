#pragma once
// What a tokenizer takes from tokenizer_config.json.
#include <optional>
#include <string>
#include <string_view>

namespace octet {

struct TokenizerConfig {
  std::optional<std::string> bos, eos;  // token texts
  std::optional<bool> add_bos, add_eos;
};

// Reads tokenizer_config.json; a token is a string or an object with "content", and null counts as
// absent. Throws BadInput naming the JSON pointer.
TokenizerConfig parse_tokenizer_config(std::string_view json);

}  // namespace octet
