#pragma once
// The decoder part of tokenizer.json: what tokens become when they are text again.
//
// A byte-level tokenizer has one that gives the bytes its tokens stand for. Others work on each
// token by itself (Replace, Metaspace, Strip), then take "<0xNN>" for a byte (ByteFallback), and
// may cut the beginning of the whole text (Strip behind Fuse).
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace octet {

// Puts `content` for every `text` of a token.
struct ReplaceDecoder {
  std::string text;  // not empty
  std::string content;
};

// Puts a space for every `replacement` of a token; of the first token of a text they vanish where
// `drops_first`.
struct MetaspaceDecoder {
  std::string replacement;  // one character
  bool drops_first;
};

// Drops up to `start` characters `content` from the beginning of a token, or of the text.
struct StripDecoder {
  std::string content;  // one character
  size_t start;
};

// What is done to one token and to the text. The default is that of a byte-level tokenizer: nothing
// more than joining the bytes that tokens stand for. Immutable; any number of threads may use one.
struct TokenDecoder {
  using Stage = std::variant<ReplaceDecoder, MetaspaceDecoder, StripDecoder>;

  std::vector<Stage> stages;         // of each token, in order
  bool byte_fallback = false;        // then "<0xNN>" is that byte
  std::vector<StripDecoder> strips;  // of the text that all tokens make, in order

  // The bytes that a token gives, as the first of a text or not.
  std::string bytes(std::string_view token, bool first) const;
  // Whether the first token of a text differs from the same one further on.
  bool first_differs() const;
};

}  // namespace octet
