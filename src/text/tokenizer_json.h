#pragma once
// tokenizer.json as values. Everything that would change a token and is not understood is refused
// by its name.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/token_decoder.h"
#include "text/tokenizer_added.h"
#include "text/tokenizer_vocab.h"

namespace simdjson {
class padded_string_view;
}

namespace octet {

// Stands for the encoded text in a PostTemplate.
inline constexpr int32_t kTextPiece = -1;
// What a post-processor makes of one text: token ids, and kTextPiece where the text's own ids go.
using PostTemplate = std::vector<int32_t>;

// The parts of a tokenizer.json.
struct TokenizerParts {
  Vocab vocab;  // the model's tokens and the added ones
  std::optional<Bpe> bpe;
  std::vector<AddedToken> added;
  Normalizer normalizer;
  std::optional<PreTokenizer> pre_tokenizer;
  PostTemplate post = {kTextPiece};
  TokenDecoder decoder;
};

// Reads tokenizer.json. Throws BadInput naming the JSON pointer of what is wrong or not supported.
// Cost: about 2 ms per MB, most of it the merges.
TokenizerParts parse_tokenizer_json(simdjson::padded_string_view json);

// The components, each from the JSON text of its value in tokenizer.json ("null" for none).
Normalizer parse_normalizer(std::string_view json);
PreTokenizer parse_pre_tokenizer(std::string_view json);
PostTemplate parse_post_processor(std::string_view json);
// The decoder must be one for that vocabulary.
TokenDecoder parse_decoder(std::string_view json, Spelling spelling);

}  // namespace octet
